package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

const echoMessages = 400000 // as in ../echo_clients.h

func echoServe(peer net.Conn, over *sync.WaitGroup) {
	var buf [4096]byte
	for {
		n, err := peer.Read(buf[:])
		if err != nil {
			break
		}
		if _, err = peer.Write(buf[:n]); err != nil {
			break
		}
	}
	peer.Close()
	over.Done()
}

// echo is the server of ../echo_bench.h, with the clients as a separate program.
func echo(connections int) float64 {
	useCores(1)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(err == nil, "listen")
	port := listener.Addr().(*net.TCPAddr).Port
	self, err := os.Executable()
	check(err == nil, "own path")
	clients := exec.Command(filepath.Join(filepath.Dir(self), "echo_client"),
		fmt.Sprint(port), fmt.Sprint(connections))
	clients.Stderr = os.Stderr
	check(clients.Start() == nil, "echo_client")
	begin := processTime()
	var over sync.WaitGroup
	over.Add(connections)
	for i := 0; i < connections; i++ {
		peer, err := listener.Accept()
		check(err == nil, "accept")
		go echoServe(peer, &over)
	}
	over.Wait()
	total := processTime() - begin
	check(clients.Wait() == nil, "the clients end")
	return each(total, echoMessages)
}
