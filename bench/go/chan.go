package main

import (
	"sync/atomic"
	"time"
)

const (
	chanValues   = 3000000
	chanCapacity = 64
)

// Three frames deeper, as in ../depth.h.

//go:noinline
func sendLow(c chan<- uint64, x uint64) uint64 {
	c <- x
	return x + 1
}

//go:noinline
func sendMiddle(c chan<- uint64, x uint64) uint64 { return sendLow(c, x) }

//go:noinline
func sendDown(c chan<- uint64, x uint64) uint64 { return sendMiddle(c, x) }

//go:noinline
func recvLow(c <-chan uint64, sum uint64) uint64 { return sum + <-c }

//go:noinline
func recvMiddle(c <-chan uint64, sum uint64) uint64 { return recvLow(c, sum) }

//go:noinline
func recvDown(c <-chan uint64, sum uint64) uint64 { return recvMiddle(c, sum) }

func sendDeep(c chan<- uint64, count uint64) {
	for x := uint64(0); x < count; {
		x = sendDown(c, x)
	}
}

func recvDeep(c <-chan uint64, count uint64) (sum uint64) {
	for i := uint64(0); i < count; i++ {
		sum = recvDown(c, sum)
	}
	return sum
}

func sendPlain(c chan<- uint64, count uint64) {
	for x := uint64(0); x < count; x++ {
		c <- x
	}
}

func recvPlain(c <-chan uint64, count uint64) (sum uint64) {
	for i := uint64(0); i < count; i++ {
		sum += <-c
	}
	return sum
}

func chanMeasure(capacity int, send func(chan<- uint64, uint64),
	recv func(<-chan uint64, uint64) uint64) float64 {
	c := make(chan uint64, capacity)
	pass := func(count uint64) time.Duration {
		begin := processTime()
		go send(c, count)
		check(recv(c, count) == count*(count-1)/2, "all was received")
		return processTime() - begin
	}
	useCores(1)
	pass(chanValues / 10)
	return each(pass(chanValues), chanValues)
}

func chanUnbuffered() float64 { return chanMeasure(0, sendPlain, recvPlain) }

func chanUnbufferedDeep() float64 { return chanMeasure(0, sendDeep, recvDeep) }

func chanBuffered() float64 { return chanMeasure(chanCapacity, sendPlain, recvPlain) }

// crossLoop gives two goroutines two cores; the Go scheduler places them.
func crossLoop(capacity int) float64 {
	var enough atomic.Bool
	c := make(chan uint64, capacity)
	useCores(2)
	go func() {
		for x := uint64(1); !enough.Load(); x++ {
			c <- x
		}
		close(c)
	}()
	s, last := span{begin: time.Now()}, uint64(0)
	for x := range c {
		last++
		check(x == last, "values come in order")
		if !enough.Load() && s.next() {
			enough.Store(true)
		}
	}
	return s.each()
}
