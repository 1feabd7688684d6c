package ipc

import (
	"bufio"
	"errors"
)

// errLong says that a line is over its bound.
var errLong = errors.New("line too long")

// readLine reads up to the next newline and returns the line without it, in
// memory of its own. A line over max bytes is read to its end without being
// kept, and reported as errLong: the next line can be read. A last line
// without a newline is not a line: it gives the reader's error.
func readLine(r *bufio.Reader, max int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if !long {
			n := len(part)
			if err == nil {
				n-- // the newline
			}
			if len(line)+n > max {
				long, line = true, nil
			} else {
				line = append(line, part[:n]...)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		case long:
			return nil, errLong
		default:
			return line, nil
		}
	}
}
