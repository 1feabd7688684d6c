package readdb

import (
	"errors"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// SQLite opens the log of writes O_RDWR|O_CREAT in every mode but immutable, removes
// one that lies beside an empty database, and has no parameter against that. What
// opens and removes files is its VFS, and a VFS may be made of another one; SQLite's
// documentation calls that a shim. This one is SQLite's own for the system but for
// three methods.
//
// The C interface is what modernc.org/sqlite/lib has: methods are addresses of Go
// functions, as the module's own VFS has them, and so this file alone is unsafe.
const vfsName = "steno-readonly"

// maxSleep is how long SQLite may wait at once, in microseconds. Beside shared memory
// that is damaged and that it may not mend, it waits a hundred times, ever longer, and
// does not ask for the end of the context meanwhile: that would be 10 s.
const maxSleep = 2000

// base is SQLite's own VFS. It is set once, before ours is registered, and never
// changed.
var base uintptr

var register = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	if base = lib.Xsqlite3_vfs_find(tls, 0); base == 0 {
		return errors.New("SQLite has no way to open files here")
	}
	size := unsafe.Sizeof(lib.Tsqlite3_vfs{})
	own := libc.Xmalloc(tls, libc.Tsize_t(size)) // for as long as the process lives
	name, err := libc.CString(vfsName)
	if own == 0 || err != nil {
		return errors.New("no memory")
	}
	vfs := at[lib.Tsqlite3_vfs](own)
	*vfs = *at[lib.Tsqlite3_vfs](base)
	vfs.FzName, vfs.FpNext = name, 0
	vfs.FxOpen, vfs.FxDelete, vfs.FxSleep = address[openMethod](open), address[deleteMethod](remove), address[sleepMethod](sleep)
	if lib.Xsqlite3_vfs_register(tls, own, 0) != lib.SQLITE_OK {
		return errors.New("SQLite does not take the read-only way to open files")
	}
	return nil
})

type (
	openMethod   = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteMethod = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	readMethod   = func(tls *libc.TLS, file, buf uintptr, amount int32, offset int64) int32
	closeMethod  = func(tls *libc.TLS, file uintptr) int32
	sleepMethod  = func(tls *libc.TLS, vfs uintptr, micros int32) int32
)

// at is what lies at an address of C's memory, which Go neither moves nor frees.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// address is how C's side knows a function of this package, method the other way about.
// A function that is no closure lies still.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }
func method[F any](a uintptr) F  { return *(*F)(unsafe.Pointer(&a)) }

// open opens every file read-only, whatever is asked for. One without a name would be
// SQLite's own, to sort in; Open has it sort in memory.
func open(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	if name == 0 {
		return lib.SQLITE_CANTOPEN
	}
	flags &^= lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_EXCLUSIVE | lib.SQLITE_OPEN_DELETEONCLOSE
	flags |= lib.SQLITE_OPEN_READONLY
	rc := method[openMethod](at[lib.Tsqlite3_vfs](base).FxOpen)(tls, base, name, file, flags, out)
	if rc == lib.SQLITE_OK && flags&lib.SQLITE_OPEN_MAIN_DB != 0 && foreign(tls, file) {
		closeFile(tls, file)
		return lib.SQLITE_NOTADB
	}
	return rc
}

// magic is what a database begins with, once it holds something.
const magic = "SQLite format 3\x00"

// foreign says whether an open file is no database, before SQLite looks for one behind
// the log of writes and the shared memory that lie beside it. It reads from the open
// file: to open it again would drop, at the end of that, the locks of this process.
func foreign(tls *libc.TLS, file uintptr) bool {
	buf := libc.Xmalloc(tls, libc.Tsize_t(len(magic)))
	if buf == 0 {
		return false
	}
	defer libc.Xfree(tls, buf)
	rc := method[readMethod](methods(file).FxRead)(tls, file, buf, int32(len(magic)), 0)
	return rc == lib.SQLITE_OK && string(libc.GoBytes(buf, len(magic))) != magic
}

func closeFile(tls *libc.TLS, file uintptr) {
	method[closeMethod](methods(file).FxClose)(tls, file)
	at[lib.Tsqlite3_file](file).FpMethods = 0 // as SQLite wants it of a file that is not open
}

func methods(file uintptr) *lib.Tsqlite3_io_methods {
	return at[lib.Tsqlite3_io_methods](at[lib.Tsqlite3_file](file).FpMethods)
}

// remove removes nothing.
func remove(*libc.TLS, uintptr, uintptr, int32) int32 { return lib.SQLITE_READONLY }

func sleep(tls *libc.TLS, _ uintptr, micros int32) int32 {
	return method[sleepMethod](at[lib.Tsqlite3_vfs](base).FxSleep)(tls, base, min(micros, maxSleep))
}
