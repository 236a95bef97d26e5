/* format.h - formats numbers in at most seven cells; NAN is "-". */
#ifndef WEFT_TOP_FORMAT_H
#define WEFT_TOP_FORMAT_H

#include <stddef.h>

#define FORMAT_ROOM 32u

enum unit {
	UNIT_COUNT,   /* 12, 1.20k, 12.3M */
	UNIT_TIME,    /* given in ns: 120ns, 1.20us, 12.3ms, 12.3s, 12m03s, 3h05m, 2d04h */
	UNIT_BYTES,   /* 512, 1.20K, 12.3M: powers of 1,024 */
	UNIT_PERCENT, /* 12% */
	UNIT_NUMBER,  /* an identifier: in full; from 2^32 on in hexadecimal, as an address */
};

void format_number(char out[FORMAT_ROOM], double number, enum unit unit);

#endif
