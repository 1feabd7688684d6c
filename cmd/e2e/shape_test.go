package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// shapes are the types of records and the fields that each was seen with. They
// have no content: a value counts only where it names the type of an object, and
// a key that is an id is a star.
//
// A field is a path from the record: names with dots between them, a star for
// each element of a list, and the type of an object that is not the record
// itself in parentheses: message.content.*(tool_use).name.
type shapes map[string]map[string]bool

func (s shapes) add(kind, field string) {
	if s[kind] == nil {
		s[kind] = map[string]bool{}
	}
	if field != "" {
		s[kind][field] = true
	}
}

// merge adds all of another.
func (s shapes) merge(other shapes) {
	for kind, fields := range other {
		s.add(kind, "")
		for field := range fields {
			s.add(kind, field)
		}
	}
}

// without gives what s has and other does not.
func (s shapes) without(other shapes) shapes {
	out := shapes{}
	for kind, fields := range s {
		if other[kind] == nil {
			out.add(kind, "")
		}
		for field := range fields {
			if !other[kind][field] {
				out.add(kind, field)
			}
		}
	}
	return out
}

// String is one line for each type, and under it one for each field.
func (s shapes) String() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintln(&b, kind)
		for _, field := range slices.Sorted(maps.Keys(s[kind])) {
			fmt.Fprintf(&b, "\t%s\n", field)
		}
	}
	return b.String()
}

// parseShapes reads what String wrote; lines that begin with # are not read.
func parseShapes(text string) shapes {
	out := shapes{}
	kind := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		field, isField := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case isField:
			out.add(kind, field)
		default:
			kind = line
			out.add(kind, "")
		}
	}
	return out
}

// deepest is how far a record is looked into; what lies below is not told apart.
const deepest = 24

// record adds the shape of one record. Its kind is the given one and then what
// stands at the given paths.
func (s shapes) record(kind string, types []string, value any) {
	named := map[string]bool{"": true}
	parts := []string{kind}
	if kind == "" {
		parts = nil
	}
	for _, path := range types {
		keys := strings.Split(path, ".")
		at := value
		for _, key := range keys {
			o, _ := at.(map[string]any)
			at = o[key]
		}
		if name, ok := at.(string); ok {
			parts = append(parts, foldType(name))
			named[strings.Join(keys[:len(keys)-1], ".")] = true
		}
	}
	kind = strings.Join(parts, "/")
	if kind == "" {
		kind = "record"
	}
	s.add(kind, "")
	s.walk(kind, "", value, named, deepest)
}

// walk adds the fields below a path.
func (s shapes) walk(kind, path string, value any, named map[string]bool, deep int) {
	var below int
	if deep > 0 {
		switch v := value.(type) {
		case map[string]any:
			if isSchema(v) {
				break // a field like any other
			}
			below = len(v)
			at := path
			if name, ok := v["type"].(string); ok && !named[path] {
				at += "(" + foldType(name) + ")"
			}
			for key, child := range v {
				s.walk(kind, join(at, foldKey(key)), child, named, deep-1)
			}
		case []any:
			below = len(v)
			for _, child := range v {
				s.walk(kind, join(path, "*"), child, named, deep-1)
			}
		}
	}
	if below == 0 {
		s.add(kind, path)
	}
}

// isSchema tells a JSON schema of a tool, which says what the tool is and nothing
// of the record.
func isSchema(o map[string]any) bool {
	_, properties := o["properties"].(map[string]any)
	return properties && o["type"] == "object" || o["$schema"] != nil
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

var (
	nameOfKey  = regexp.MustCompile(`^[$@]?[A-Za-z_][A-Za-z0-9_-]{0,47}$`)
	nameOfType = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,47}$`)
	hexadeca   = regexp.MustCompile(`^[0-9a-fA-F-]{8,}$`)
)

// fewDigits is how many digits a name has at most: sha256, ephemeral_5m. With
// more it is an id.
const fewDigits = 3

func isID(s string) bool {
	digits := 0
	for _, r := range s {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return digits > fewDigits || digits > 0 && hexadeca.MatchString(s)
}

// foldKey keeps a key that is a name. Uuids, numbers, hashes, paths, names of
// files and models, and prose become a star.
func foldKey(key string) string {
	if !nameOfKey.MatchString(key) || isID(key) {
		return "*"
	}
	return key
}

// foldType keeps the name of a type; anything else becomes a star.
func foldType(name string) string {
	if !nameOfType.MatchString(name) || isID(name) {
		return "*"
	}
	return name
}
