/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef COFFER_IO_H
#define COFFER_IO_H

#include <linux/blk_types.h>

struct bio;
struct coffer_device;
struct coffer_io;

/* io.c */
void coffer_io_convert(struct coffer_io *io, unsigned int from, unsigned int bytes);
void coffer_io_finish(struct coffer_io *io);

/* read.c */
void coffer_read_map(struct coffer_io *io);
int coffer_read_end_io(struct coffer_io *io, blk_status_t *error);
void coffer_read_finish(struct coffer_io *io);

/* write.c */
int coffer_write_map(struct coffer_io *io);
void coffer_write_end_io(struct coffer_io *io);
void coffer_write_finish(struct coffer_io *io);

#endif
