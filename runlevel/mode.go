package runlevel

import "fmt"

// Mode is how an object that exists is brought in line with its manifest.
type Mode string

// The modes of [Options].
const (
	// ApplyServerSide is one forced server-side apply, and the default: the zero
	// value. What others have added to an object stays; what an earlier apply of
	// ours, or a manager of [Options].Adopt, has set, and the manifest no longer
	// names, goes.
	ApplyServerSide Mode = ""
	// ApplyMerge is what the cluster-version operator does: the object is read,
	// merged with the manifest (package runlevel/merge), and if that changes it,
	// updated at the resourceVersion that was read. A container, port or volume that
	// somebody has added goes; what the manifest no longer names stays where the
	// merge only adds, such as a label.
	ApplyMerge Mode = "ApplyMerge"
)

// String returns the name of the mode.
func (m Mode) String() string {
	if m == ApplyServerSide {
		return "ApplyServerSide"
	}
	return string(m)
}

// Validate returns an error for anything but the modes above.
func (m Mode) Validate() error {
	switch m {
	case ApplyServerSide, ApplyMerge:
		return nil
	}
	return fmt.Errorf("runlevel: %q is not a mode", string(m))
}
