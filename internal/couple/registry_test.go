package couple

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The calls of two groups, of ranks 0 and 1, and of ranks 2 and 3.
const left, right = 10, 20

// sent returns what a registry sends: to whom, and the first byte.
func sent(m *Registry) (all []string) {
	for s, ok := m.Next(); ok; s, ok = m.Next() {
		all = append(all, fmt.Sprint(map[byte]string{asking: "ask ", failing: "fail "}[s.Payload[0]], s.To))
	}
	return all
}

// A rank asks the first member that lives, and the next one when it dies.
func TestAskOne(t *testing.T) {
	m := NewRegistry()
	m.Died(2)
	m.AskOne(right, []int{2, 3, 4})
	require.Equal(t, []string{"ask 3"}, sent(m))
	m.Died(2)
	require.Empty(t, sent(m))
	m.Died(4)
	m.Died(3) // none is left
	require.Empty(t, sent(m))
}

func TestAskAll(t *testing.T) {
	m := NewRegistry()
	m.AskAll(right, []int{2, 3})
	m.Died(2)
	require.Equal(t, []string{"ask 2", "ask 3"}, sent(m))
}

// Rank 0 asks about the call of rank 2. In every order of the question, the end of the call, and
// the end of rank 0's own call, it is told once that the call has failed, if it has and rank 0
// still waits.
func TestRegistry(t *testing.T) {
	for order := range 2 * 24 {
		fails := order%2 > 0
		a, b := NewRegistry(), NewRegistry()
		a.Begin(left)
		b.Begin(right)
		told, waits := 0, false
		carry := func() {
			for s, ok := a.Next(); ok; s, ok = a.Next() {
				b.Receive(0, s.Payload)
			}
			for s, ok := b.Next(); ok; s, ok = b.Next() {
				if id, failed := a.Receive(2, s.Payload); failed {
					require.EqualValues(t, right, id)
					require.True(t, waits && fails)
					told++
				}
			}
		}
		events := []func(){
			func() { a.AskOne(right, []int{2, 3}); waits = true },
			func() { b.End(right, left, fails) },
			carry,
			func() { a.End(left, right, false); waits = false },
		}
		for k, n := len(events), order/2; k > 0; k-- {
			events[n%k]()
			events = append(events[:n%k], events[n%k+1:]...)
			n /= k
		}
		waited := waits
		carry()
		require.LessOrEqual(t, told, 1)
		if fails && waited {
			require.Equal(t, 1, told, order)
		}
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{asking, 10, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := NewRegistry()
		m.Begin(left)
		_, answered := m.Receive(1, payload)
		require.False(t, answered)
	})
}
