package scan

import "bytes"

// Members calls f for each member of the object at the start of obj, with the
// key's bytes as written, without quotes, and the value's, until f says stop.
// It says whether it came to the end of the object, or to f's stop.
func Members(obj []byte, f func(key, value []byte) (more bool)) (whole bool) {
	i := space(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return false
	}
	i = space(obj, i+1)
	if i < len(obj) && obj[i] == '}' {
		return true
	}
	for i < len(obj) && obj[i] == '"' {
		end := stringEnd(obj, i)
		if end < 0 {
			return false
		}
		key := obj[i+1 : end-1]
		i = space(obj, end)
		if i >= len(obj) || obj[i] != ':' {
			return false
		}
		i = space(obj, i+1)
		end = valueEnd(obj, i)
		if end < 0 {
			return false
		}
		if !f(key, obj[i:end]) {
			return true
		}
		i = space(obj, end)
		if i >= len(obj) || obj[i] != ',' {
			return i < len(obj) && obj[i] == '}'
		}
		i = space(obj, i+1)
	}
	return false
}

// Elements calls f for each element of the array at the start of arr, until f
// says stop.
func Elements(arr []byte, f func(value []byte) (more bool)) {
	i := space(arr, 0)
	if i >= len(arr) || arr[i] != '[' {
		return
	}
	for {
		i = space(arr, i+1)
		end := valueEnd(arr, i)
		if end < 0 || !f(arr[i:end]) {
			return
		}
		i = space(arr, end)
		if i >= len(arr) || arr[i] != ',' {
			return
		}
	}
}

// Member is the value of the object's member of this name, the last one if it
// has several; nil when it has none.
func Member(obj []byte, name string) []byte {
	var found []byte
	Members(obj, func(key, value []byte) bool {
		if string(key) == name {
			found = value
		}
		return true
	})
	return found
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// stringEnd is the index after the closing quote of the string at b[i], or -1.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		n := bytes.IndexByte(b[j:], '"')
		if n < 0 {
			return -1
		}
		j += n
		slashes := 0
		for k := j - 1; k > i && b[k] == '\\'; k-- {
			slashes++
		}
		j++
		if slashes%2 == 0 {
			return j
		}
	}
}

// valueEnd is the index after the value that starts at b[i], or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	end := i
	for end < len(b) && b[end] != ',' && b[end] != '}' && b[end] != ']' && b[end] > ' ' {
		end++
	}
	if end == i {
		return -1
	}
	return end
}

// nestedEnd is the same for an object or array.
func nestedEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
