package main

import (
	"fmt"
	"net"
	"net/http"
)

// serve is an HTTP server like ../site_weft.c; it prints its port.
func serve() {
	useCores(1)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(err == nil, "listen")
	body := []byte("Hello, World!")
	http.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(body)
	})
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	check(http.Serve(listener, nil) == nil, "serve")
}
