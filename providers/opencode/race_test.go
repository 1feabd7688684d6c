//go:build race

package opencode

const raced = true
