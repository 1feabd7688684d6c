package ipc

import (
	"context"
	"errors"

	"steno/ipc/wire"
	"steno/owned"
)

// Code is the stable name of an error on the wire. The set is closed; each
// name has one JSON-RPC number.
type Code string

// The codes. A client decides by them, never by the message.
const (
	CodeParse        Code = "parse_error"        // the line is not JSON in UTF-8
	CodeRequest      Code = "invalid_request"    // JSON, but not one request object
	CodeMethod       Code = "method_not_found"   // no such method
	CodeParams       Code = "invalid_params"     // wrong type, out of range, unknown kind
	CodeTooLarge     Code = "request_too_large"  // the line is over wire.MaxRequest
	CodeUnavailable  Code = "unavailable"        // the event log does not work now; ask again
	CodeInternal     Code = "internal"           // a fault of the daemon; its log says more
	CodeTooMany      Code = "too_many_requests"  // in flight on a connection, or connections
	CodeUnauthorized Code = "unauthorized"       // another user, or more than a client in another namespace may
	CodeMajor        Code = "incompatible_major" // the client speaks another major version
	CodeNotFound     Code = "not_found"          // nothing has this pane, id or name
)

// numbers holds the JSON-RPC number of each code.
var numbers = map[Code]int{
	CodeParse: -32700, CodeRequest: -32600, CodeMethod: -32601,
	CodeParams: -32602, CodeInternal: -32603,
	CodeTooLarge: -32001, CodeUnavailable: -32002, CodeTooMany: -32003,
	CodeUnauthorized: -32004, CodeMajor: -32005, CodeNotFound: -32006,
}

// Error is an error that crossed the wire.
type Error struct {
	Code    Code
	Message string // one sentence without content of an agent
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

var (
	// ErrInUse is returned by Listen when somebody already serves the socket.
	ErrInUse = errors.New("another daemon serves this socket")
	// ErrUnsafe is returned by Listen for a directory or file at the socket's
	// place that is not ours alone.
	ErrUnsafe = owned.ErrUnsafe
	// ErrUnreachable is returned by Dial when nobody serves the socket.
	ErrUnreachable = errors.New("the daemon is not reachable")
	// ErrDisconnected is returned by a call whose connection ended first.
	ErrDisconnected = errors.New("the daemon closed the connection")
	// ErrIncompatible is returned when the other side speaks another major
	// version of the contract.
	ErrIncompatible = errors.New("incompatible version of the agent API")
	// ErrUnknownKind is returned for a page with an event kind that this
	// program does not know: it must not guess what the event means.
	ErrUnknownKind = errors.New("unknown event kind")
	// ErrProtocol is returned for an answer that breaks the contract.
	ErrProtocol = errors.New("answer breaks the contract")
)

// storeError marks an error of the event log.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// wireError maps an error of the daemon to the one that crosses the wire.
// Only an *Error carries its own text: whatever else failed may name paths or
// content, which belong in nobody's answer. The caller logs those.
func wireError(err error) *Error {
	var e *Error
	var s *storeError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, wire.ErrNotFound):
		return &Error{CodeNotFound, wire.ErrNotFound.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{CodeUnavailable, "the daemon stopped working on the request"}
	case errors.As(err, &s):
		return &Error{CodeUnavailable, "the event log does not work at the moment"}
	}
	return &Error{CodeInternal, "the daemon could not answer; its log says why"}
}

// invalid is an invalid_params error.
func invalid(msg string) error { return &Error{CodeParams, msg} }
