#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the library into an empty folder, and builds a program with it as a stranger would:
# with the header and pkg-config alone, from C and, where there is a compiler, from C++.
# Arguments: the build folder, meson, the C compiler with what it is called by (ccache).
set -eu
build=$1 meson=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

command -v pkg-config >/dev/null || { echo "skipped: there is no pkg-config: apt install pkg-config"; exit 77; }
"$meson" install -C "$build" --no-rebuild --destdir "$dir" >/dev/null
PKG_CONFIG_PATH=$(dirname "$(find "$dir" -name spead_tutorial.pc)")
PKG_CONFIG_SYSROOT_DIR=$dir
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
libdir=$(dirname "$(find "$dir" -name libspt.so)")

cd "$dir"
# The program that the header begins with; the whole of the other header is read beside it.
sed -n '/::$/,/^ \*     }$/s/^ \*     //p' "$(find . -name spt.h)" >program.c
set -- "$@" -Wall -Wextra -Werror
# shellcheck disable=SC2046
"$@" program.c -include spead_tutorial/spt_recv.h -o shared $(pkg-config --cflags --libs spead_tutorial)
LD_LIBRARY_PATH=$libdir ./shared
"$@" program.c -o static $(pkg-config --cflags spead_tutorial) "$libdir/libspt.a" -lpthread -lm
./static
if command -v c++ >/dev/null; then
    sed 's/= {0}/= {}/' program.c >program.cpp
    c++ -Wall -Wextra -Werror -include spead_tutorial/spt_recv.h program.cpp -o cpp \
        $(pkg-config --cflags --libs spead_tutorial)
    LD_LIBRARY_PATH=$libdir ./cpp
    if c++ -std=c++20 -fsyntax-only -x c++ -include coroutine -include span /dev/null; then
        cat >program20.cpp <<'END'
#include <cstdio>
#include <spead_tutorial/spt_recv.hpp>
#include <vector>
int main()
{
    const spt::thread_pool threads;
    const std::vector<float> values(1000, 2.0F);
    const spt::heap heap(spt::array(0x1000, "values", "Two, a thousand times", values));
    spt::memory_stream sender(threads);
    sender.send(heap);
    std::vector<std::byte> packets(sender.size());
    sender.copy(packets);
    spt::recv_stream receiver(threads);
    receiver.add_memory(packets);
    for (const spt::received_heap &received : receiver)
        std::puts(received.payload().size() > 4000 ? "received" : "too little");
}
END
        c++ -std=c++20 -Wall -Wextra -Werror program20.cpp -o cpp20 \
            $(pkg-config --cflags --libs spead_tutorial)
        [ "$(LD_LIBRARY_PATH=$libdir ./cpp20)" = received ]
    fi
fi

strangers=$(nm -D --defined-only "$libdir/libspt.so" | awk '$3 !~ /^spt_/ {print $3}')
[ -z "$strangers" ] || { echo "exported, but not spt_: $strangers"; exit 1; }
