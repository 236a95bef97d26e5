/* weft/weft.h - includes the headers of the core library.
 *
 * Not included: weft/metrics.h, weft/trace.h and weft/debug.h, which look into a running program;
 * weft/embed.h, for bindings and foreign event loops; weft/poller.h and weft/wheel.h, for programs
 * with their own event loop; and the headers of the libraries beside the core.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/abort.h>
#include <weft/addr.h>
#include <weft/base.h>
#include <weft/chan.h>
#include <weft/child.h>
#include <weft/dgram.h>
#include <weft/dns.h>
#include <weft/file.h>
#include <weft/histogram.h>
#include <weft/listener.h>
#include <weft/loop.h>
#include <weft/op.h>
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
#include <weft/value.h>
#include <weft/watch.h>
#include <weft/work.h>

#endif
