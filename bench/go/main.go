// All rows of Go in one program: `rows_go ROW` measures that row once and prints one number.  The
// header of each group, ../*_bench.h, describes its rows, or ../*_weft.c where Go is the only
// peer.  `rows_go serve` is a server, for ../served.py.
package main

import (
	"fmt"
	"os"
)

var rows = map[string]func() float64{
	"threadlet.switch":     threadletSwitch,
	"threadlet.spawn_join": threadletSpawnJoin,
	"chan.unbuffered":      chanUnbuffered,
	"chan.unbuffered.deep": chanUnbufferedDeep,
	"chan.buffered":        chanBuffered,
	"chan.cross_loop.64":   func() float64 { return crossLoop(64) },
	"chan.cross_loop.0":    func() float64 { return crossLoop(0) },
	"sleep.10k":            sleep10k,

	"echo.threadlet.cpu.64":   func() float64 { return echo(64) },
	"echo.threadlet.cpu.1000": func() float64 { return echo(1000) },
}

func die(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func check(ok bool, what string) {
	if !ok {
		die("check failed: %s", what)
	}
}

func main() {
	if len(os.Args) != 2 {
		die("usage: %s ROW", os.Args[0])
	}
	if os.Args[1] == "serve" {
		serve()
	}
	measure := rows[os.Args[1]]
	if measure == nil {
		die("%s: no row %s", os.Args[0], os.Args[1])
	}
	fmt.Printf("%.3f\n", measure())
}
