/* weft/weft.h - includes all headers of the core library. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/abort.h>
#include <weft/addr.h>
#include <weft/base.h>
#include <weft/chan.h>
#include <weft/child.h>
#include <weft/dag.h>
#include <weft/dgram.h>
#include <weft/dns.h>
#include <weft/file.h>
#include <weft/listener.h>
#include <weft/loop.h>
#include <weft/metrics.h>
#include <weft/op.h>
#include <weft/poller.h>
#include <weft/promise.h>
#include <weft/runtime.h>
#include <weft/schedule.h>
#include <weft/scope.h>
#include <weft/select.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/threadlet.h>
#include <weft/timer.h>
#include <weft/tls.h>
#include <weft/trace.h>
#include <weft/value.h>
#include <weft/watch.h>
#include <weft/wheel.h>
#include <weft/work.h>

#endif
