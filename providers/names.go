package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// InputHash is the hash by which a turn's input is recognised: the SHA-256 of
// the trimmed text in lower-case hex, "" of one without text.
func InputHash(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// IsUUID says whether s is a lower-case UUID, as most programs name sessions.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// ProgramName is the last element of an executable's or script's path, "" of
// none. The kernel marks an executable that an update replaced: the mark is
// left out.
func ProgramName(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(path, " (deleted)"))
}

// IsInterpreter says whether an executable of this name runs scripts in which
// the programs are written.
func IsInterpreter(name string) bool {
	return name == "node" || name == "nodejs" || name == "bun" || name == "deno"
}

// valued are options of node whose value is the next argument, in the forms
// that were tried with 20.20.2.
var valued = map[string]bool{
	"-r": true, "--require": true, "--import": true, "--loader": true, "--experimental-loader": true,
	"--env-file": true, "-C": true, "--conditions": true, "--title": true,
}

// Script finds in an interpreter's arguments, those after its own name, the
// script: the first that is neither an option nor the value of one, "run" of
// bun and deno left out. after is what follows it. ok is false when there is
// none.
func Script(args []string) (script string, after []string, ok bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case valued[a]:
			i++
		case strings.HasPrefix(a, "-"), i == 0 && a == "run":
		default:
			return a, args[i+1:], true
		}
	}
	return "", nil, false
}
