// Package ipc serves the event log over a Unix socket, and is the client of
// that service.
package ipc
