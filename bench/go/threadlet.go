package main

import (
	"runtime"
	"sync"
	"time"
)

const (
	switchTimes = 3000000
	spawnTimes  = 1000000
	sleepCount  = 10000
	sleepTimes  = 100
)

// Three frames deeper, as in ../depth.h.

//go:noinline
func yieldLow(x int) int {
	runtime.Gosched()
	return x + 1
}

//go:noinline
func yieldMiddle(x int) int { return yieldLow(x) }

//go:noinline
func yieldDown(x int) int { return yieldMiddle(x) }

func pairRun(times int) {
	var done sync.WaitGroup
	done.Add(2)
	for i := 0; i < 2; i++ {
		go func() {
			for x := 0; x < times; {
				x = yieldDown(x)
			}
			done.Done()
		}()
	}
	done.Wait()
}

func threadletSwitch() float64 {
	useCores(1)
	pairRun(switchTimes / 10)
	begin := processTime()
	pairRun(switchTimes)
	return each(processTime()-begin, 2*switchTimes)
}

var (
	spawnEnded = make(chan struct{})
	spawnRan   int
)

func spawnBody() {
	spawnRan++
	spawnEnded <- struct{}{}
}

// spawnJoin waits for the end with a channel, which is cheaper here than a WaitGroup.
func spawnJoin() {
	go spawnBody()
	<-spawnEnded
}

func threadletSpawnJoin() float64 {
	useCores(1)
	for i := 0; i < spawnTimes/10; i++ {
		spawnJoin()
	}
	spawnRan = 0
	begin := processTime()
	for i := 0; i < spawnTimes; i++ {
		spawnJoin()
	}
	total := processTime() - begin
	check(spawnRan == spawnTimes, "all have run")
	return each(total, spawnTimes)
}

func sleeper(done *sync.WaitGroup) {
	for i := 0; i < sleepTimes; i++ {
		time.Sleep(time.Millisecond)
	}
	done.Done()
}

// sleep10k uses both cores, as is the default: with one core it is not faster.
func sleep10k() float64 {
	var done sync.WaitGroup
	useCores(2)
	done.Add(sleepCount)
	begin := time.Now()
	for i := 0; i < sleepCount; i++ {
		go sleeper(&done)
	}
	done.Wait()
	return float64(time.Since(begin)) / float64(sleepTimes*time.Millisecond)
}
