/* SPDX-License-Identifier: BSD-3-Clause */
/* What an item is on the wire: which ids it may have, and its descriptor. */
#ifndef SPTI_ITEM_H
#define SPTI_ITEM_H

#include "spead_tutorial/spt.h"

/* SPT_ERR_ARGUMENT for an id that the flavour's pointers cannot hold. */
spt_status spti_check_id(const spt_flavour *flavour, uint64_t id, spt_error *err);

/* The same, also for one that is reserved. */
spt_status spti_check_own_id(const spt_flavour *flavour, uint64_t id, spt_error *err);

/* Write a descriptor as a nested packet; *to is the caller's to free. */
spt_status spti_descriptor_encode(const spt_flavour *flavour, const spt_descriptor *descriptor,
                                  uint8_t **to, size_t *length, spt_error *err);

#endif
