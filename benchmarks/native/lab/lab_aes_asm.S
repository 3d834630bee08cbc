/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's own AES-XTS for x86-64, from its source tree. */
#include "aes-xts-avx-x86_64.S"
