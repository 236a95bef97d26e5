package main

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const processClock = 2 // CLOCK_PROCESS_CPUTIME_ID

// processTime is the CPU time of all threads, including those of the Go runtime.
func processTime() time.Duration {
	var t syscall.Timespec
	_, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processClock,
		uintptr(unsafe.Pointer(&t)), 0)
	check(e == 0, "clock_gettime")
	return time.Duration(t.Nano())
}

func each(total time.Duration, count int) float64 {
	return float64(total.Nanoseconds()) / float64(count)
}

// useCores runs goroutines on `count` threads, and all threads on the first `count` cores.  The
// first core is the one that the other programs are pinned to.
func useCores(count int) {
	mask := uint64(1)<<count - 1
	tasks, err := os.ReadDir("/proc/self/task")
	check(err == nil, "/proc/self/task")
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(id),
			unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
		check(e == 0, "two cores are needed")
	}
	runtime.GOMAXPROCS(count)
}

// span is wall time per event, as in ../span.h.
type span struct {
	count, beginCount int
	begin, end        time.Time
}

const (
	spanSettle  = 100 * time.Millisecond
	spanMeasure = 500 * time.Millisecond
	spanLook    = 64
)

// next counts an event and returns whether it was the last.
func (s *span) next() bool {
	s.count++
	if s.count%spanLook != 0 {
		return false
	}
	now := time.Now()
	if s.beginCount != 0 {
		s.end = now
		return now.Sub(s.begin) >= spanMeasure
	}
	if now.Sub(s.begin) >= spanSettle {
		s.begin, s.beginCount = now, s.count
	}
	return false
}

func (s *span) each() float64 {
	return each(s.end.Sub(s.begin), s.count-s.beginCount)
}
