package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"steno/owned"
)

const fileMode = 0o600

// The database file itself is never opened here, only looked at by name:
// closing any descriptor of it would drop every lock that SQLite holds on it in
// this process (POSIX locks belong to the process, not to the descriptor).

// prepare makes sure that path is a private regular file of ours in a directory
// of ours, and creates both when they are missing.
func prepare(path string) error {
	if err := prepareDir(filepath.Dir(path)); err != nil {
		return err
	}
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createFile(path); err != nil {
			return wrap("create database file", err)
		}
		fi, err = os.Lstat(path)
	}
	if err != nil {
		return wrap("look at database file", err)
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("database file: %w: it is %s, want a regular file", ErrForeign, fi.Mode().Type())
	}
	if !ours(fi) {
		return fmt.Errorf("database file: %w: another user owns it", ErrForeign)
	}
	// Others could read what agents said. The owner's bits stay as they are: a
	// file that was made read-only is meant to be.
	if perm := fi.Mode().Perm(); perm&^fileMode != 0 {
		if err := os.Chmod(path, perm&fileMode); err != nil {
			return wrap("make database file private", err)
		}
	}
	return nil
}

func prepareDir(dir string) error {
	err := owned.MakeDir(dir)
	if errors.Is(err, owned.ErrUnsafe) {
		return fmt.Errorf("state directory: %w: %w", ErrForeign, err)
	}
	return wrap("create state directory", err)
}

// createFile makes an empty file that has its mode before it has its name, so
// that another process opening the same new database never meets a file that
// the umask has closed. One that exists by then is left alone.
func createFile(path string) error {
	tmp, err := writeTemp(path, nil)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir := filepath.Dir(path)
	if err := syncDir(dir); err != nil {
		return err
	}
	// The directories may be as new as the file, whoever made them, and with them
	// the log and its ceiling would be lost. One that cannot be synced is not ours.
	for up := filepath.Dir(dir); up != dir; dir, up = up, filepath.Dir(up) {
		syncDir(up)
	}
	return nil
}

// writeFile replaces path by a file with this content, durably.
func writeFile(path string, content []byte) error {
	tmp, err := writeTemp(path, content)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeTemp writes and syncs a new private file beside path.
func writeTemp(path string, content []byte) (string, error) {
	tmp := path + ".tmp-" + rand.Text()[:12]
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", err
	}
	err = f.Chmod(fileMode)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(tmp)
		return "", err
	}
	return tmp, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

func ours(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// setAside renames the database and what belongs to it, under a name that
// SQLite still opens as one database. Nothing may have it open.
//
// The database goes first: SQLite drops a WAL that it finds beside an empty
// database, but would replay one that it finds beside another.
func setAside(path string, now time.Time) error {
	aside := path + ".corrupt-" + now.UTC().Format("20060102T150405Z")
	for n := 2; ; n++ {
		_, err := os.Lstat(aside)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return wrap("set corrupt database aside", err)
		}
		aside = fmt.Sprintf("%s.corrupt-%s-%d", path, now.UTC().Format("20060102T150405Z"), n)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(path+suffix, aside+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return wrap("set corrupt database aside", err)
		}
	}
	return wrap("set corrupt database aside", syncDir(filepath.Dir(path)))
}

// identity remembers which files are open, to notice when the names lead
// elsewhere. A commit into an unlinked file would be acknowledged and lost.
type identity struct {
	path    string
	db, wal fs.FileInfo
}

func identify(path string) (identity, error) {
	db, err := os.Lstat(path)
	if err != nil {
		return identity{}, wrap("look at database file", err)
	}
	wal, err := os.Lstat(path + "-wal")
	if err != nil {
		return identity{}, wrap("look at write-ahead log", err)
	}
	return identity{path: path, db: db, wal: wal}, nil
}

// check costs two stats. It returns the size of the write-ahead log.
func (id identity) check() (int64, error) {
	db, err := os.Lstat(id.path)
	if err == nil && !os.SameFile(db, id.db) || errors.Is(err, fs.ErrNotExist) {
		return 0, ErrReplaced
	}
	if err != nil {
		return 0, wrap("look at database file", err)
	}
	wal, err := os.Lstat(id.path + "-wal")
	if err == nil && !os.SameFile(wal, id.wal) || errors.Is(err, fs.ErrNotExist) {
		return 0, ErrReplaced
	}
	if err != nil {
		return 0, wrap("look at write-ahead log", err)
	}
	return wal.Size(), nil
}
