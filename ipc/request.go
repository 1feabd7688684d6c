package ipc

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// maxID is the longest request id, in bytes of JSON. It is part of every
// answer, so it is part of a page's bound.
const maxID = 256

// request is one call. Its id is nil for a notification.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
}

// parseRequest reads one line. On an error the request still carries the id
// when that could be read.
func parseRequest(line []byte) (*request, *Error) {
	req := new(request)
	if !utf8.Valid(line) || !json.Valid(line) {
		return req, &Error{CodeParse, "the line is not one JSON value in UTF-8"}
	}
	switch bytes.TrimLeft(line, " \t\r\n")[0] {
	case '{':
	case '[':
		return req, &Error{CodeRequest, "batches are not served: send one request a line"}
	default:
		return req, &Error{CodeRequest, "a request is a JSON object"}
	}
	var in struct {
		JSONRPC json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(line, &in); err != nil { // deeper than the decoder goes
		return req, &Error{CodeRequest, "the request cannot be read"}
	}
	if in.ID != nil {
		switch in.ID[0] {
		case '{', '[', 't', 'f':
			return req, &Error{CodeRequest, "an id is a string, a number or null"}
		}
		if len(in.ID) > maxID {
			return req, &Error{CodeRequest, "an id has at most 256 bytes"}
		}
		req.id = in.ID
	}
	var version string
	if json.Unmarshal(in.JSONRPC, &version) != nil || version != "2.0" {
		return req, &Error{CodeRequest, `"jsonrpc" must be "2.0"`}
	}
	if json.Unmarshal(in.Method, &req.method) != nil || req.method == "" {
		return req, &Error{CodeRequest, `"method" must be a string`}
	}
	req.params = in.Params
	return req, nil
}

// decode reads the parameters into v, and lets go of their JSON: a request may
// wait for a long time, and its line may have been long.
func (r *request) decode(v any) error {
	params := bytes.TrimSpace(r.params)
	r.params = nil
	if len(params) == 0 || bytes.Equal(params, []byte("null")) {
		return nil
	}
	if params[0] != '{' {
		return invalid("parameters are given by name, in an object")
	}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(params, v); {
	case errors.As(err, &wrong):
		return invalid(wrong.Field + " has the wrong type or is out of range")
	case err != nil:
		return invalid("the parameters cannot be read")
	}
	return nil
}

// encode writes v as one line, without the escapes that HTML would need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// encodeResult writes an answer.
func encodeResult(id json.RawMessage, result any) ([]byte, error) {
	return encode(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}{"2.0", id, result})
}
