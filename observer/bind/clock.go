package bind

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uptime is the time since boot, sleep included: the clock of start ticks.
func uptime() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read boot clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// tickRate is _SC_CLK_TCK, which the kernel hands to every program in its
// auxiliary vector; 100 when it cannot be read.
func tickRate(proc string) uint64 {
	const atClkTck, usual = 17, 100
	data, err := os.ReadFile(proc + "/self/auxv")
	if err != nil {
		return usual
	}
	const word = int(unsafe.Sizeof(uintptr(0)))
	get := func(b []byte) uint64 {
		if word == 4 {
			return uint64(binary.NativeEndian.Uint32(b))
		}
		return binary.NativeEndian.Uint64(b)
	}
	for ; len(data) >= 2*word; data = data[2*word:] {
		if v := get(data[word:]); get(data) == atClkTck && v > 0 && v <= 1_000_000 {
			return v
		}
	}
	return usual
}

// Boot is the id of this boot of the machine; start ticks count within it.
func Boot() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
