/* version.h - the release of redis-server whose answers the store gives. */
#ifndef STORE_VERSION_H
#define STORE_VERSION_H

#define STORE_SPEAKS "7.0.15"

#endif
