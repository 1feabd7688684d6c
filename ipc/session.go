package ipc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"steno/ipc/wire"
)

// maxInFlight is the most requests of one connection that are worked on.
const maxInFlight = 16

// session is one connection. Three kinds of goroutine live in it: the reader
// (run itself), one writer, and one per request; run joins them all.
//
// The writer holds one answer at a time and takes the next when that one is
// written. A client that does not read therefore soon stops being read from,
// and is cut off by the writer's deadline.
type session struct {
	s    *Server
	conn net.Conn
	peer peer
	// out hands answers to the writer; unbuffered, so that no answer waits
	// unseen.
	out   chan []byte
	slots chan struct{}
	// big is held while a request has an answer of up to a page in memory: one
	// page per connection beside the one being written, whatever the client asks
	// for at once.
	big chan struct{}
	// server ends when the server stops.
	server context.Context
	// patience ends when nobody may wait any longer: the client sends no more,
	// or the server stops. Requests in flight then answer with what there is.
	patience context.Context
}

func newSession(s *Server, conn net.Conn, p peer) *session {
	return &session{
		s: s, conn: conn, peer: p,
		out:   make(chan []byte),
		slots: make(chan struct{}, maxInFlight),
		big:   make(chan struct{}, 1),
	}
}

// run serves the connection until the client is gone or server ends.
func (c *session) run(server context.Context) {
	c.server = server
	// life ends when the connection is of no more use.
	life, die := context.WithCancel(context.WithoutCancel(server))
	patience, hurry := context.WithCancel(server)
	c.patience = patience
	var writer, requests sync.WaitGroup
	defer c.conn.Close()
	// Both owned by run and joined below.
	writer.Go(func() { c.writeAll(life, die) })
	writer.Go(func() {
		// Wakes the reader when the server stops or the writer has failed.
		select {
		case <-server.Done():
		case <-life.Done():
		}
		c.conn.SetReadDeadline(time.Unix(1, 0))
	})
	c.readAll(life, &requests)
	hurry()
	requests.Wait()
	die()
	writer.Wait()
}

// readAll reads request lines until the client sends no more, the server
// stops, or the connection fails.
func (c *session) readAll(life context.Context, requests *sync.WaitGroup) {
	r := bufio.NewReaderSize(c.conn, 16<<10)
	for !c.ending(life) {
		if _, err := r.Peek(1); err != nil {
			return
		}
		line, err := c.line(life, r)
		var e *Error
		switch {
		case errors.As(err, &e):
			if !c.send(life, encodeError(nil, e)) || e == errSlow {
				return
			}
			continue
		case err != nil:
			return
		}
		c.dispatch(life, line, requests)
	}
}

var (
	errTooLarge = &Error{CodeTooLarge, "a request line has at most 2 MiB"}
	errSlow     = &Error{CodeRequest, "the request line did not end in time"}
)

// line reads one request line, whose first byte is there, within LineTimeout.
func (c *session) line(life context.Context, r *bufio.Reader) ([]byte, error) {
	// The wake-up at the end is a deadline too, and may just have been replaced
	// by ours: so look after each setting.
	c.conn.SetReadDeadline(time.Now().Add(c.s.o.LineTimeout))
	if c.ending(life) {
		return nil, io.EOF
	}
	line, err := readLine(r, wire.MaxRequest)
	c.conn.SetReadDeadline(time.Time{})
	if c.ending(life) {
		return nil, io.EOF
	}
	switch {
	case errors.Is(err, errLong):
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	}
	return line, err
}

// ending says whether no further request is to be read.
func (c *session) ending(life context.Context) bool {
	return life.Err() != nil || c.server.Err() != nil
}

// dispatch starts the work on one request.
func (c *session) dispatch(life context.Context, line []byte, requests *sync.WaitGroup) {
	req, e := parseRequest(line)
	if e != nil {
		c.send(life, encodeError(req.id, e))
		return
	}
	if req.id == nil {
		return // a notification: JSON-RPC has no answer to it
	}
	select {
	case c.slots <- struct{}{}:
	default:
		msg := fmt.Sprintf("at most %d requests of a connection are in flight", maxInFlight)
		c.send(life, encodeError(req.id, &Error{CodeTooMany, msg}))
		return
	}
	// Owned by run, joined through requests.
	requests.Go(func() {
		defer func() { <-c.slots }()
		c.answer(life, req)
	})
}

// answer works on one request and hands its answer to the writer.
func (c *session) answer(life context.Context, req *request) {
	m, ok := methods[req.method]
	if !ok {
		c.send(life, encodeError(req.id, &Error{CodeMethod, "no such method"}))
		return
	}
	if c.peer.apart && !openToAll[req.method] {
		c.send(life, encodeError(req.id, &Error{CodeUnauthorized, "a client in another network or user namespace reads the catalog and the capabilities only"}))
		return
	}
	body, release, err := m(c, life, req)
	if release != nil {
		defer release()
	}
	if err != nil {
		e := wireError(err)
		if e.Code == CodeInternal || e.Code == CodeUnavailable && life.Err() == nil {
			c.s.report(req.method, err)
		}
		body = encodeError(req.id, e)
	}
	c.send(life, body)
}

// send hands a line to the writer; false when the connection is at its end.
func (c *session) send(life context.Context, line []byte) bool {
	select {
	case c.out <- line:
		return true
	case <-life.Done():
		return false
	}
}

// writeAll writes answers until life ends, and ends it when the client does
// not take one in time.
func (c *session) writeAll(life context.Context, die context.CancelFunc) {
	for {
		select {
		case line := <-c.out:
			c.conn.SetWriteDeadline(time.Now().Add(c.s.o.WriteTimeout))
			if _, err := c.conn.Write(line); err != nil {
				die()
				return
			}
		case <-life.Done():
			return
		}
	}
}

// encodeError writes an error line. A nil id is printed as null.
func encodeError(id json.RawMessage, e *Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	line, err := encode(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   any             `json:"error"`
	}{"2.0", id, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data"`
	}{numbers[e.Code], e.Message, struct {
		Code Code `json:"code"`
	}{e.Code}}})
	if err != nil { // an id that was accepted is valid JSON
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"answer cannot be encoded","data":{"code":"internal"}}}` + "\n")
	}
	return line
}
