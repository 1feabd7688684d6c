// Package claude knows Claude Code.
package claude
