package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/mpicx"
	"github.com/mpicx/go-mpicx/mpicx/mpicxtest"
)

// No member has two shards of a stripe, and each stripe has all of its shards.
func TestLayout(t *testing.T) {
	for n := 1; n <= 20; n++ {
		for k := 1; k <= 5; k++ {
			for m := range 5 {
				requireLayout(t, n, scheme{k, m})
			}
		}
	}
}

func requireLayout(t *testing.T, n int, s scheme) {
	var all [][]int
	for r := range n {
		g, at := groupOf(r, make([]int, n), s)
		require.Equal(t, r, g.members[at])
		size := len(g.members)
		require.GreaterOrEqual(t, size, min(n, s.k+s.m))
		require.Less(t, size, max(2*(s.k+s.m), n+1))
		require.Equal(t, min(s.m, size-1), g.m)
		all = append(all, g.members)
		for c := range g.k {
			require.Equal(t, at, g.holder(g.stripeOf(at, c), c))
		}
		holders := make(map[int]bool)
		for i := range g.k + g.m {
			holders[g.holder(at, i)] = true
		}
		require.Len(t, holders, g.k+g.m)
	}
	for r, members := range all {
		for _, other := range members {
			require.Equal(t, members, all[other], "of rank %d and %d", r, other)
		}
	}
}

// Members of a group are on different machines, where there are as many.
func TestMachines(t *testing.T) {
	machines := []int{0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9}
	for r := range machines {
		g, _ := groupOf(r, machines, scheme{2, 2})
		on := make(map[int]bool)
		for _, other := range g.members {
			on[machines[other]] = true
		}
		require.Len(t, on, 4, "%v", g.members)
	}
	require.Equal(t, []int{0, 2, 1, 3, 4}, spread([]int{0, 0, 2, 2, 2}))
}

// Any k shards have all data. One parity for each data shard is a copy.
func TestCode(t *testing.T) {
	rnd := rand.NewChaCha8([32]byte{})
	for _, s := range []scheme{{1, 1}, {1, 3}, {2, 1}, {4, 2}, {3, 3}} {
		shards := make([][]byte, s.k+s.m)
		for i := range shards {
			shards[i] = make([]byte, 100)
			if i < s.k {
				_, _ = rnd.Read(shards[i])
			}
		}
		rows, err := newRows(s)
		require.NoError(t, err)
		for j := range s.m {
			if s.k == 1 {
				copy(shards[1+j], shards[0])
				continue
			}
			for i := range s.k {
				require.NoError(t, rows[j].EncodeIdx(shards[i], i, shards[s.k+j:][:1]))
			}
		}
		for set := range 1 << len(shards) {
			some, count := make([][]byte, len(shards)), 0
			for i := range shards {
				if set>>i&1 == 1 {
					some[i], count = shards[i], count+1
				}
			}
			if count != s.k {
				continue
			}
			for i := range s.k {
				got, err := decode(s, slices.Clone(some), i)
				require.NoError(t, err)
				require.Equal(t, shards[i], got, "%v: shard %d of %b", s, i, set)
			}
		}
	}
}

// A write that fails leaves what was there.
func TestWriteNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	require.NoError(t, os.Mkdir(dir, 0o777))
	write := func(text string, err error) error {
		return writeNew(dir, "name", 3, func(w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		})
	}
	full := errors.New("no space left")
	require.NoError(t, write("old", nil))
	require.ErrorIs(t, write("new", full), full)
	b, _ := os.ReadFile(filepath.Join(dir, "name"))
	require.Equal(t, "old", string(b))
	require.NoError(t, os.WriteFile(filepath.Join(dir, temporary(3)+"crashed"), nil, 0o666))
	require.NoError(t, prepareDir(dir, 3))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

type limited struct{ room int }

func (w *limited) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return w.room, errors.New("no space left")
	}
	w.room -= len(b)
	return len(b), nil
}

func TestWriteFileOfManyBlocks(t *testing.T) {
	b, err := newBlob(nil, 1, []*variable{variableOf(t, "x", make([]float64, 400_000))})
	require.NoError(t, err)
	h := stored{key{Version: 3, Run: 1, Origin: 2, Parts: 2}, 1}
	var file bytes.Buffer
	records := [2][]byte{emptyRecord(t), b[blobHead:]}
	require.NoError(t, writeFile(&file, h, records))
	got, back, err := readFile(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	require.Equal(t, records, back)
	require.Equal(t, int64(file.Len()), got.size())
	for room := 0; room < file.Len(); room += 700_000 {
		require.Error(t, writeFile(&limited{room}, h, records))
	}
	// Blocks that change places have the right checksums, and are found out.
	swapped := slices.Clone(file.Bytes())
	one, two := swapped[headerSize:][:blockSize+4], swapped[headerSize+blockSize+4:][:blockSize+4]
	copy(one, file.Bytes()[headerSize+blockSize+4:])
	copy(two, file.Bytes()[headerSize:])
	_, _, err = readFile(bytes.NewReader(swapped))
	require.ErrorIs(t, err, ErrFile)
}

func variableOf[T any](t testing.TB, name string, v T) *variable {
	x, err := newVariable(name, &v)
	require.NoError(t, err)
	return x
}

// blobOf returns a blob of three variables.
func blobOf(t testing.TB) []byte {
	b, err := newBlob(nil, 1, []*variable{
		variableOf(t, "x", []float64{1, 2}), variableOf(t, "n", 7), variableOf(t, "gob", map[string]int{"a": 1}),
	})
	require.NoError(t, err)
	return b
}

func emptyRecord(t testing.TB) []byte {
	b, err := newBlob(nil, 0, nil)
	require.NoError(t, err)
	return b[blobHead:]
}

// However a file is damaged, reading it ends with what was written or with ErrFile.
func FuzzReadFile(f *testing.F) {
	blob := blobOf(f)
	var file bytes.Buffer
	require.NoError(f, writeFile(&file, stored{key{Version: 3, Run: 1, Origin: 2, Parts: 2}, 1}, [2][]byte{emptyRecord(f), blob[blobHead:]}))
	f.Add(file.Bytes())
	f.Add(file.Bytes()[:headerSize])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, records, err := readFile(bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, ErrFile)
			return
		}
		var again bytes.Buffer
		require.NoError(t, writeFile(&again, h.stored, records))
		require.Equal(t, b, again.Bytes())
	})
}

// A record sets all variables or none, whatever bytes it consists of.
func FuzzRecord(f *testing.F) {
	f.Add(blobOf(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := splitBlob(b)
		if err != nil {
			return
		}
		for _, r := range records {
			x, n, m := []float64{5}, 5, map[string]int{"b": 5}
			var vars []*variable
			for name, p := range map[string]any{"x": &x, "n": &n, "gob": &m} {
				v, err := newVariable(name, p)
				require.NoError(t, err)
				vars = append(vars, v)
			}
			if restore(vars, r) != nil {
				require.Equal(t, []float64{5}, x)
				require.Equal(t, 5, n)
				require.Equal(t, map[string]int{"b": 5}, m)
			}
		}
	})
}

// A process that was declared dead may be slow to end. The files that it still writes and removes
// do no harm to those that its successor has saved.
func TestLateWriter(t *testing.T) {
	dir := t.TempDir()
	mpicxtest.Run(t, 1, func(ctx context.Context, world *mpicx.Comm) error {
		step := 1
		save := func(s *Store) error {
			s.Protect("step", &step)
			return s.Save(ctx, step).Wait(ctx)
		}
		dead, err := Open(ctx, world, Dir(dir, Keep(1)))
		require.NoError(t, errors.Join(err, save(dead)))
		former := dead.base.Key
		successor, err := Open(ctx, world, Dir(dir, Keep(1)))
		require.NoError(t, err)
		successor.run = dead.run
		_, err = successor.Restore(ctx)
		require.NoError(t, errors.Join(err, save(successor)), "the same version again")

		require.NoError(t, dead.list(former))
		dead.prune(former)
		records, err := dead.base.records(0)
		require.NoError(t, err)
		f := stored{former, 0}
		require.NoError(t, writeNew(dir, f.name(), 0, func(w io.Writer) error { return writeFile(w, f, records) }))

		next, err := Open(ctx, world, Dir(dir))
		require.NoError(t, err)
		require.Equal(t, successor.base.Key.Origin, next.base.Key.Origin)
		_, err = next.Restore(ctx)
		return errors.Join(err, next.Close(ctx), successor.Close(ctx), dead.Close(ctx))
	})
}

// Advice about memory changes neither the memory nor the slice, wherever it begins and ends.
func TestExpect(t *testing.T) {
	const huge = 2 << 20
	for _, length := range []int{0, 1, 2*huge - 1, 2 * huge, 2*huge + 1, 5*huge + 12345} {
		for _, from := range []int{0, 1, 4096, huge - 1} {
			whole := bytes.Repeat([]byte("pattern"), from+length)[:from+length]
			want := bytes.Clone(whole)
			got := expect(whole[from:])
			require.Len(t, got, length)
			require.Empty(t, expect(got[:0]))
			require.True(t, bytes.Equal(want, whole), "%d bytes from %d", length, from)
		}
	}
	require.Nil(t, expect(nil))
}
