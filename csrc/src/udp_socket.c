/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns how UDP sockets are set up, at either end. Knows nothing of what goes through them. */
#include "udp_socket.h"

#include "status.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Addresses ---- */

/* The first that is of the family. */
static spt_status choose(const struct addrinfo *found, const char *host, int family,
                         struct sockaddr_storage *to, socklen_t *length, spt_error *err)
{
    while (found != NULL && family != AF_UNSPEC && found->ai_family != family)
        found = found->ai_next;
    if (found == NULL || (found->ai_family != AF_INET && found->ai_family != AF_INET6))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "host '%.100s' has no %s address: all endpoints of a stream must be of "
                         "one address family, which is the socket's",
                         host, family == AF_INET6 ? "IPv6" : "IPv4");
    memcpy(to, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    return SPT_OK;
}

spt_status spti_udp_resolve(const spt_endpoint *endpoint, int lowest_port, int family,
                            struct sockaddr_storage *to, socklen_t *length, spt_error *err)
{
    if (endpoint->port < lowest_port || endpoint->port > 65535)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "port %d of host '%.100s' is out of range: ports are %d to 65535",
                         endpoint->port, endpoint->host, lowest_port);
    if (endpoint->host == NULL)
        return spti_fail(err, SPT_ERR_ARGUMENT, "the endpoint has no host");
    char port[8];
    snprintf(port, sizeof(port), "%hu", (unsigned short)endpoint->port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(endpoint->host, port, &hints, &found);
    if (code == EAI_SYSTEM)
        return spti_fail_errno(err, "could not look up host '%.100s'", endpoint->host);
    if (code != 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "could not look up host '%.100s': %s; check its spelling, or give an "
                         "address",
                         endpoint->host, gai_strerror(code));
    spt_status status = choose(found, endpoint->host, family, to, length, err);
    freeaddrinfo(found);
    return status;
}

bool spti_udp_is_any(const spt_endpoint *own)
{
    return own->host == NULL || own->host[0] == '\0';
}

/* Have a socket of IPv6 receive what comes by IPv4, too. */
static bool set_both(int fd)
{
    return setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int)) == 0;
}

/* Whether there is IPv6, and a socket may be of both: a kernel or a container may be without. */
static bool has_both(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && set_both(fd) && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

spt_status spti_udp_resolve_own(const spt_endpoint *endpoint, spt_endpoint *named,
                                struct sockaddr_storage *to, socklen_t *length, spt_error *err)
{
    *named = *endpoint;
    if (spti_udp_is_any(endpoint))
        named->host = has_both() ? "::" : "0.0.0.0";
    return spti_udp_resolve(named, 0, AF_UNSPEC, to, length, err);
}

int spti_udp_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    getsockname(fd, (struct sockaddr *)&address, &length);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

spt_status spti_udp_interface(const char *text, struct in_addr *to, spt_error *err)
{
    if (inet_pton(AF_INET, text, to) != 1)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "interface address '%.60s' is not an IPv4 address such as 192.168.31.1",
                         text);
    return SPT_OK;
}

bool spti_udp_names_interface(const char *text)
{
    return text != NULL && text[0] != '\0' && strcmp(text, "0.0.0.0") != 0;
}

spt_status spti_udp_check_interface(const struct sockaddr_storage *address, const char *text,
                                    unsigned index, spt_error *err)
{
    bool v4 = address->ss_family == AF_INET;
    unsigned scope = v4 ? 0 : ((const struct sockaddr_in6 *)address)->sin6_scope_id;
    if (spti_udp_names_interface(text) && !v4)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "interface address '%.60s' goes with IPv4; for IPv6 multicast give an "
                         "interface index",
                         text);
    if (index > 0 && v4)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "interface index %u goes with IPv6 multicast; for IPv4 give an interface "
                         "address",
                         index);
    if (index > 0 && scope > 0 && index != scope)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "interface index %u is not that of the address's own scope, %u: give one "
                         "of them",
                         index, scope);
    return SPT_OK;
}

bool spti_udp_is_multicast(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return IN_MULTICAST(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
}

/* ---- Sockets ---- */

spt_status spti_socket_open(int family, int type, const spt_endpoint *own, int *fd, spt_error *err)
{
    *fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (*fd < 0 || (own != NULL && spti_udp_is_any(own) && family == AF_INET6 && !set_both(*fd)))
        return spti_fail_errno(err, "could not make a %s socket",
                               type == SOCK_DGRAM ? "UDP" : "TCP");
    return SPT_OK;
}

spt_status spti_socket_duplicate(int given, int type, int *fd, int *family, spt_error *err)
{
    int its_type = 0;
    socklen_t length = sizeof(int);
    if (given < 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the socket that was given is closed: its descriptor is %d", given);
    if (getsockopt(given, SOL_SOCKET, SO_TYPE, &its_type, &length) != 0 ||
        getsockopt(given, SOL_SOCKET, SO_DOMAIN, family, &length) != 0)
        return spti_fail_errno(err, "the socket that was given cannot be used");
    if (its_type != type || (*family != AF_INET && *family != AF_INET6))
        return spti_fail(err, SPT_ERR_ARGUMENT, "the socket that was given is not a %s socket",
                         type == SOCK_DGRAM ? "UDP" : "TCP");
    *fd = fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* or what a program prints is sent */
    return *fd < 0 ? spti_fail_errno(err, "could not duplicate the socket") : SPT_OK;
}

spt_status spti_udp_set(int fd, int level, int option, int value, const char *what, spt_error *err)
{
    if (setsockopt(fd, level, option, &value, sizeof(value)) != 0)
        return spti_fail_errno(err, "could not set the socket's %s", what);
    return SPT_OK;
}

spt_status spti_udp_set_buffer(int fd, int option, size_t size, spt_error *err)
{
    int bytes = size > INT32_MAX / 2 ? INT32_MAX / 2 : (int)size; /* which is doubled */
    const char *what = option == SO_SNDBUF ? "send buffer" : "receive buffer";
    return size == 0 ? SPT_OK : spti_udp_set(fd, SOL_SOCKET, option, bytes, what, err);
}

static spt_status join_ipv6(int fd, const struct sockaddr_in6 *group, spt_error *err)
{
    struct ipv6_mreq request = {group->sin6_addr, group->sin6_scope_id};
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) != 0)
        return spti_fail_errno(err, "could not join the multicast group on interface %u",
                               group->sin6_scope_id);
    return SPT_OK;
}

spt_status spti_udp_join(int fd, const struct sockaddr_storage *group, const char *interface,
                         spt_error *err)
{
    if (group->ss_family == AF_INET6)
        return join_ipv6(fd, (const struct sockaddr_in6 *)group, err);
    struct ip_mreq request = {.imr_multiaddr = ((const struct sockaddr_in *)group)->sin_addr};
    bool named = interface != NULL && interface[0] != '\0';
    if (named)
        SPTI_TRY(spti_udp_interface(interface, &request.imr_interface, err));
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) != 0)
        return spti_fail_errno(err, "could not join the multicast group%s%.60s",
                               named ? " on interface " : "", named ? interface : "");
    return SPT_OK;
}
