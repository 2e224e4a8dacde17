package transport

import "math"

// AnySource and AnyTag are the wildcards of a receive. AnyTag matches users' tags, which are not
// negative.
const (
	AnySource = -1
	AnyTag    = -1
)

// NoTag is the tag of no message. A receive with NoTag ends only by an error.
const NoTag = math.MinInt

// CollectiveTag is the tag of the messages of the seq-th collective operation of an epoch,
// from 1. It is less than AnyTag.
func CollectiveTag(seq int) int { return AnyTag - seq }

// AgreementTag is the tag of the messages of an agreement that is made by messages. It is no tag of
// a collective call that is compared with others, and its CollectiveNumber is Agreements or more.
func AgreementTag(seq int) int { return CollectiveTag(Agreements + seq) }

// Agreements is greater than the number of every collective call of an epoch.
const Agreements = 1 << 29

// CollectiveNumber is the inverse of CollectiveTag.
func CollectiveNumber(tag int) (seq int) { return AnyTag - tag }

// IsCollective says whether messages with the tag are of a collective operation, which
// needs all members.
func IsCollective(tag int) bool { return tag < AnyTag && tag > NoTag }
