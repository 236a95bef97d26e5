/* format.h - numbers in a few cells: at most seven, and NAN is "-". */
#ifndef WEFT_TOP_FORMAT_H
#define WEFT_TOP_FORMAT_H

#include <stddef.h>

#define FORMAT_ROOM 32u

enum unit {
	UNIT_COUNT,   /* 12, 1.20k, 12.3M */
	UNIT_TIME,    /* of nanoseconds: 120ns, 1.20us, 12.3ms, 12.3s, 12m03s, 3h05m, 2d04h */
	UNIT_BYTES,   /* 512, 1.20K, 12.3M: by 1,024 */
	UNIT_PERCENT, /* 12% */
	UNIT_NUMBER,  /* a name rather than a count: as it is, from 2^32 on as an address */
};

void format_number(char out[FORMAT_ROOM], double number, enum unit unit);

#endif
