/* version.h - the release of redis-server that the store is compatible with. */
#ifndef STORE_VERSION_H
#define STORE_VERSION_H

#define STORE_SPEAKS "7.0.15"

#endif
