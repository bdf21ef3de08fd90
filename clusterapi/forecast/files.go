package forecast

import (
	"context"
	"os"

	"github.com/clusterupdate/clusterupdate/clusterapi/dump"
	"github.com/clusterupdate/clusterupdate/clusterapi/simulation/payload"
)

// RehearseFiles is [Rehearse] for what lies in files: cluster is a must-gather or another
// recording, a folder or an archive; from and to are folders of release images, as oc adm
// release extract fills them. They take the place of o's Reader, From and To. Errors are
// those of Rehearse, of [dump.OpenFile] and of [payload.Open].
func RehearseFiles(ctx context.Context, cluster, from, to string, o RehearseOptions) (*Rehearsal, error) {
	recording, err := dump.OpenFile(ctx, cluster, dump.Options{})
	if err != nil {
		return nil, err
	}
	o.Reader = recording
	if o.From, err = payload.Open(ctx, from, os.DirFS(from)); err != nil {
		return nil, err
	}
	if o.To, err = payload.Open(ctx, to, os.DirFS(to)); err != nil {
		return nil, err
	}
	return Rehearse(ctx, o)
}
