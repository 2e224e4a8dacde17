package errchan

import (
	"encoding/binary"
	"fmt"

	"github.com/mpicx/go-mpicx/internal/wire"
)

// MaxData is the greatest length of a report's data, in bytes.
const MaxData = 12 << 10

// AppendReports appends the number of reports, and for each its rank, corrupt, the length of its
// data, and the data. All numbers are varints.
func AppendReports(b []byte, reports []Report) []byte {
	b = binary.AppendUvarint(b, uint64(len(reports)))
	for _, r := range reports {
		b = binary.AppendUvarint(b, uint64(r.Rank))
		b = wire.AppendBytes(wire.AppendBool(b, r.Corrupt), r.Data)
	}
	return b
}

// ReadReports reads what AppendReports has appended. The ranks are below size.
func ReadReports(d *wire.Reader, size int) []Report {
	const shortest = 3 // bytes of a report
	n := d.Below(d.Len()/shortest+1, "number of reports")
	if n == 0 {
		return nil
	}
	reports := make([]Report, 0, n)
	for range n {
		r := Report{Rank: d.Below(size, "rank"), Corrupt: d.Bool(), Data: d.Bytes()}
		if len(r.Data) > MaxData {
			d.Fail(fmt.Errorf("data of %d bytes, expected %d at most", len(r.Data), MaxData))
		}
		if d.Failed() {
			return nil
		}
		reports = append(reports, r)
	}
	return reports
}
