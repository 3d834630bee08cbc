# SPDX-License-Identifier: GPL-2.0-or-later
#
# Delegates only: each target calls a script that can be called by hand.

KERNELS ?= 6.12 6.1 7.3
release := $(shell uname -r)
headers := /lib/modules/$(release)/build

all: module

help:
	@echo "make               the module for the running kernel, build/$(release)/dm-coffer.ko"
	@echo "make userspace     the command, build/userspace/coffer"
	@echo "make install       put both where they are found, with manual page and completion (as root)"
	@echo "make check         all tests, in virtual machines (as root)"
	@echo "make check-all     and what takes long: conversions, hundreds of cycles"
	@echo "make check-cryptsetup  cryptsetup's own tests on the module (long)"
	@echo "make check-debug   KASAN, kmemleak, lockdep: KUnit, the functional tests, races (as root, half an hour)"
	@echo "make check-lint    shellcheck, sparse, checkpatch (as root)"
	@echo "make bench         the fio suite on raw, dm-crypt and coffer; DEV=/dev/... for a real disk"
	@echo "                   QUICK=1 under 4 minutes; READONLY=1 never writes (as root)"
	@echo "make bench-insn    instructions per I/O, which repeat to 1% (as root)"
	@echo "make bench-smp     where conversion runs on two CPUs: goals for the driver's rule (as root, 40 minutes)"
	@echo "make bench-native  nanoseconds per bio at the speed of this CPU, in User-Mode Linux (as root)"
	@echo "make modules       the module for each kernel that the tests boot: KERNELS='$(KERNELS)'"
	@echo "make clean         remove build/"

module:
	@[ -d $(headers) ] || { echo "coffer: no headers of the running kernel: install linux-headers-$(release)" >&2; exit 1; }
	@mkdir -p build/$(release)
	@cp -Rpu Kbuild driver build/$(release)/
	$(MAKE) -C $(headers) M=$(CURDIR)/build/$(release) modules
	@ln -sf driver/dm-coffer.ko build/$(release)/dm-coffer.ko

install: install-module install-userspace

install-module: module root
	$(MAKE) -C $(headers) M=$(CURDIR)/build/$(release) modules_install

# DESTDIR= and PREFIX= as usual; of the module INSTALL_MOD_PATH=
install-userspace: userspace
	$(MAKE) -C userspace install

userspace: deps
	$(MAKE) -C userspace

modules: $(KERNELS:%=module-%)

module-%: deps
	@tests/vm/build-module $* . build/$*
	@tests/vm/build-module $* tests/kmod build/kmod/$* pieces

check: deps modules userspace
	@tests/run $(KERNELS)

# and what takes long under emulation
check-all: deps modules userspace
	@COFFER_ALL=1 COFFER_SCRIPT_LIMIT=1800 COFFER_VM_LIMIT=5400 tests/run $(KERNELS)

check-cryptsetup: deps module-6.12
	@tests/cryptsetup/run

check-debug: deps
	@tests/debug

check-lint: deps
	@tests/lint

bench: deps
	@benchmarks/run

bench-insn: deps module-6.12
	@benchmarks/insn

bench-smp: deps module-6.12
	@benchmarks/smp
bench-native: deps
	@benchmarks/native/run

clean:
	rm -rf build

root:
	@[ "$$(id -u)" = 0 ] || { echo "coffer: this needs root: sudo make $(MAKECMDGOALS)" >&2; exit 1; }

# Debian packages that tests and benchmarks use; nothing to do where they are there.
deps: root
	@tests/install-packages

.PHONY: all help module install install-module install-userspace modules userspace check check-all check-cryptsetup check-debug check-lint bench bench-insn bench-smp bench-native clean root deps
