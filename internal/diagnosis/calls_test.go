package diagnosis_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mpicx/go-mpicx/internal/diagnosis"
	"github.com/mpicx/go-mpicx/internal/record"
	"github.com/mpicx/go-mpicx/internal/signature"
)

const one, other = 1 << 40, 2 << 40 // communicators

func TestCalls(t *testing.T) {
	barrier, bcast := signature.Call{Kind: signature.Barrier}.Word(), signature.Call{Kind: signature.Bcast, Root: 1}.Word()
	words := make([]uint64, record.Size/8)
	compared := func(all ...*record.Record) string {
		return strings.Join(diagnosis.Calls([]int{0, 1, 2}, one, 0, "one", func(rank int, to []record.Call) ([]record.Call, bool) {
			own, _ := all[rank].Append(nil)
			calls := record.Decode(record.Encode(own), to)
			return calls, len(calls) < record.Sent
		}), "\n")
	}
	for _, a := range []record.Record{{}, record.In(bytesOf(words))} {
		b, c := record.Record{Clock: new(atomic.Uint32)}, record.Record{}
		for n := 1; n < 99; n++ {
			require.Empty(t, compared(&a, &b, &c), n)
			a.Add(one, 0, n, barrier)
			b.Add(one, 0, n, barrier)
			c.Add(one, 0, n, barrier)
			own, complete := a.Append(nil)
			require.Equal(t, []any{min(n, record.Kept), n <= record.Kept}, []any{len(own), complete})
		}
		a.Add(one, 0, 99, barrier)
		b.Add(one, 0, 99, barrier)
		require.Equal(t, `call 97 of one: Barrier at ranks 0-2
call 98 of one: Barrier at ranks 0-2
● call 99 of one: Barrier at ranks 0, 1 | none at rank 2`, compared(&a, &b, &c))
		b.Clock.Store(1 << 30)
		b.Add(one, 1, 1, bcast) // after an error
		require.Regexp(t, `^● call 1 of one, epoch 1: none at ranks 0, 2 \| Bcast\(root 1, 0 × byte\) at rank 1 \(..:..:..\)$`, compared(&a, &b, &c))
		for range record.Kept {
			a.Add(other, 1, 1, barrier)
		}
		c.Add(one, 1, 1, barrier)
		require.Regexp(t, `^● .*: not recorded at rank 0 \| Bcast.* \| Barrier at rank 2$`, compared(&a, &b, &c))
	}
	last, _ := record.AppendFrom(bytesOf(words), nil)
	require.Len(t, last, record.Kept)
}

// Ranks that make calls while their records are read differ only in what they have not made after all.
// What was before a program began, with a call 0, counts for nothing.
func TestCallsThatAreMadeMeanwhile(t *testing.T) {
	barrier, bcast := signature.Call{Kind: signature.Barrier}.Word(), signature.Call{Kind: signature.Bcast}.Word()
	for epoch, want := range []string{"", "● call 1 of one: Barrier at rank 0 | none at rank 1"} {
		for late := 2; late <= 4; late++ { // passes
			both, reads := make([]record.Record, 2), 0
			for r := range both {
				for range record.Kept {
					both[r].Add(other, 0, 1, bcast)
				}
				both[r].Add(one, 0, 0, 0)
			}
			both[0].Add(one, 0, 1, barrier)
			lines := diagnosis.Calls([]int{0, 1}, one, 0, "one", func(rank int, to []record.Call) ([]record.Call, bool) {
				if reads += rank; rank == 1 && reads == late {
					both[1].Add(one, uint32(epoch), 1, []signature.Word{barrier, bcast}[epoch])
				}
				return both[rank].Append(to)
			})
			require.Equal(t, want, strings.Join(lines, "\n"), late)
		}
	}
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), record.Size)
}

// Whatever a process leaves in its memory, its calls can be compared.
func FuzzGarbage(f *testing.F) {
	f.Add(uint64(70), uint64(one), ^uint64(0), uint64(1)<<32)
	f.Fuzz(func(t *testing.T, made, place, word, when uint64) {
		words := []uint64{made}
		for ; len(words) < record.Size/8; word, when = word*31, when+place&1<<32 {
			words = append(words, word, place, when)
		}
		diagnosis.Calls([]int{0, 1}, place, 0, "c", func(rank int, to []record.Call) ([]record.Call, bool) {
			words[0] = made << rank
			return record.AppendFrom(bytesOf(words), to)
		})
	})
}
