package checkpoint

import "fmt"

// An Option says how a [Store] keeps what is saved.
type Option func(*options)

type options struct {
	scheme
	dir   string
	every int
	keep  int
	limit int64
	err   error // of the first wrong option
}

// check notes what is wrong with an option, unless it is ok or another is wrong.
func (o *options) check(ok bool, format string, args ...any) {
	if !ok && o.err == nil {
		o.err = fmt.Errorf("checkpoint: "+format, args...)
	}
}

func read(opts []Option) (*options, error) {
	o := &options{scheme: scheme{1, 1}, every: 1, keep: 2}
	for i, opt := range opts {
		if o.check(opt != nil, "option %d is nil, expected one such as Partner(1)", i); opt != nil {
			opt(o)
		}
	}
	if o.dir == "" {
		o.every, o.keep = 0, 0
	}
	return o, o.err
}

// Partner has r other ranks keep a copy of each rank's data. All data survive the loss of any r
// ranks of a group, so of more ranks in all if they are of different groups. Partner(1) is the
// default. With Partner(0) each rank keeps only its own data. [RS] takes less memory, and more
// work.
func Partner(r int) Option {
	return func(o *options) {
		o.check(0 <= r && r <= 255, "Partner(%d), expected 0 to 255 copies", r)
		o.scheme = scheme{1, r}
	}
}

// RS has groups of k+m or some more ranks keep each other's data by a Reed-Solomon code. All
// data survive the loss of any m ranks of each group. RS(1, r) is Partner(r). With fewer than
// k+m ranks k is smaller, and with fewer than m+1 ranks m is, too.
func RS(k, m int) Option {
	return func(o *options) {
		o.check(k >= 1 && m >= 0 && k+m <= 256, "RS(%d, %d), expected at least 1 and 0, and 256 together at most", k, m)
		o.scheme = scheme{k, m}
	}
}

// MaxBytes limits the memory that a rank gives to two versions, its own and other ranks'
// data. A Save that needs more fails at all ranks before anything is lost, with a *[LimitError].
// It goes by the rank with the most data, and by the lowest limit.
func MaxBytes(n int64) Option {
	return func(o *options) {
		o.check(n > 0, "MaxBytes(%d), expected a positive number", n)
		o.limit = n
	}
}

// A DirOption says which files there are.
type DirOption func(*options)

// Dir has versions written to files in a directory, which is made if it is not there: one file for
// each rank and version. The directory may be on a file system that all ranks share, or each rank's
// own. The files survive the end of the job, and of the machine if the directory does.
func Dir(path string, opts ...DirOption) Option {
	return func(o *options) {
		o.check(path != "", `Dir(""), expected the path of a directory`)
		o.dir = path
		for _, opt := range opts {
			opt(o)
		}
	}
}

// Every has each n-th Save write its files, the n-th first. The default is 1.
func Every(n int) DirOption {
	return func(o *options) {
		o.check(n >= 1, "Every(%d), expected at least 1", n)
		o.every = n
	}
}

// Keep keeps the files of the newest n versions that have all their files, and all files that are
// not older. The default is 2.
func Keep(n int) DirOption {
	return func(o *options) {
		o.check(n >= 1, "Keep(%d), expected at least 1", n)
		o.keep = n
	}
}
