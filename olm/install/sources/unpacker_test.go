package sources_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/internal/oci"
	"github.com/clusterupdate/clusterupdate/internal/oci/ocitest"
	"github.com/clusterupdate/clusterupdate/manifest/image"
	olmapi "github.com/clusterupdate/clusterupdate/olm/api"
	"github.com/clusterupdate/clusterupdate/olm/install"
	"github.com/clusterupdate/clusterupdate/olm/install/sources"
	"github.com/clusterupdate/clusterupdate/olm/install/sources/sourcestest"
)

func request(spec, name string) install.UnpackRequest {
	return install.UnpackRequest{
		Lookup: olmapi.BundleLookup{Path: spec, Identifier: name},
		Limits: install.UnpackLimits{Timeout: time.Minute, Retry: 5 * time.Minute},
	}
}

// bundleImage is the image of mesh.v1 with some files and labels others; an empty one is left out.
func bundleImage(l *ocitest.Layout, files, labels map[string]string) oci.Descriptor {
	all := sourcestest.Bundle("mesh.v1")
	for name, text := range files {
		all[name] = text
	}
	var entries []ocitest.Entry
	for name, text := range all {
		if text != "" {
			entries = append(entries, ocitest.File(name, text))
		}
	}
	with := sourcestest.Labels()
	for name, value := range labels {
		with["operators.operatorframework.io.bundle."+name] = value
		if value == "" {
			delete(with, "operators.operatorframework.io.bundle."+name)
		}
	}
	return l.Labelled(with, l.Layer(entries...))
}

func kinds(all []*unstructured.Unstructured) string {
	var out []string
	for _, u := range all {
		out = append(out, u.GetKind())
	}
	return strings.Join(out, " ")
}

func TestUnpackerReads(t *testing.T) {
	const whole = "ConfigMap CustomResourceDefinition ClusterServiceVersion"
	annotations := sourcestest.Bundle("mesh.v1")["metadata/annotations.yaml"]
	moved := map[string]string{"manifests/config.yaml": "", "manifests/crd.yaml": "", "metadata/annotations.yaml": "",
		"srv/csv.yaml": sourcestest.Bundle("mesh.v1")["manifests/csv.yaml"]}
	for name, tt := range map[string]struct {
		files, labels map[string]string
		want          string
	}{
		"as it is":                {want: whole},
		"labels alone":            {files: map[string]string{"metadata/annotations.yaml": ""}, want: whole},
		"annotations alone":       {labels: map[string]string{"mediatype.v1": "", "manifests.v1": "", "metadata.v1": ""}, want: whole},
		"annotations of the past": {files: map[string]string{"metadata/annotations.yaml": strings.ReplaceAll(annotations, "manifests/", "/manifests")}, want: whole},
		"another directory":       {files: moved, labels: map[string]string{"manifests.v1": "/srv"}, want: "ClusterServiceVersion"},
		"JSON":                    {files: map[string]string{"manifests/x.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}`}, want: whole + " Service"},
		"the first document":      {files: map[string]string{"manifests/x.yml": "---\n# x\nkind: Service\napiVersion: v1\n---\nkind: Secret\napiVersion: v1\n"}, want: whole + " Service"},
		"an object in any file":   {files: map[string]string{"manifests/x": "kind: Service\napiVersion: v1\n"}, want: whole + " Service"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ocitest.NewLayout()
			d := bundleImage(l, tt.files, tt.labels)
			source, _ := count(t, l)
			u := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source}))(t)
			all := checktest.Get(u.Unpack(t.Context(), request("r.example/x@"+d.Digest, "mesh.v1")))(t)
			checktest.Equal(t, sorted(tt.want), sorted(kinds(all)), "kinds")
		})
	}
}

func TestUnpackerRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'm'; c++ {
		bomb += fmt.Sprintf("%c: &%[1]c [*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c]\n", c, c-1)
	}
	for name, tt := range map[string]struct {
		files, labels map[string]string
		operator      string
		limits        image.Limits
		reason, want  string
	}{
		"another format":     {labels: map[string]string{"mediatype.v1": "helm+v3"}, reason: sources.ReasonInvalid, want: `format "helm+v3", and not registry+v1`},
		"no format":          {files: map[string]string{"metadata/annotations.yaml": ""}, labels: map[string]string{"mediatype.v1": ""}, reason: sources.ReasonInvalid, want: `format "", and not`},
		"they differ":        {labels: map[string]string{"manifests.v1": "srv/"}, reason: sources.ReasonInvalid, want: `manifests.v1 is "manifests", but the image has "srv"`},
		"leads out":          {labels: map[string]string{"metadata.v1": "../x"}, reason: sources.ReasonInvalid, want: "metadata.v1"},
		"whole image":        {labels: map[string]string{"manifests.v1": "/"}, reason: sources.ReasonInvalid, want: "manifests.v1"},
		"bad annotations":    {files: map[string]string{"metadata/annotations.yaml": "annotations: [a]"}, reason: sources.ReasonInvalid, want: "metadata/annotations.yaml: json"},
		"bomb":               {files: map[string]string{"manifests/x.yaml": bomb}, reason: sources.ReasonInvalid, want: "manifests/x.yaml: more than"},
		"bomb of the file":   {files: map[string]string{"metadata/annotations.yaml": bomb}, reason: sources.ReasonInvalid, want: "metadata/annotations.yaml: more than"},
		"no YAML":            {files: map[string]string{"manifests/x.yaml": "a: b: c"}, reason: sources.ReasonInvalid, want: "manifests/x.yaml: "},
		"no object":          {files: map[string]string{"manifests/x.yaml": "# nothing\n"}, reason: sources.ReasonInvalid, want: "manifests/x.yaml: holds no object"},
		"no kind":            {files: map[string]string{"manifests/x.json": `{"a":1}`}, reason: sources.ReasonInvalid, want: "no object with apiVersion and kind"},
		"directory":          {files: map[string]string{"manifests/d/x.yaml": "a: b"}, reason: sources.ReasonInvalid, want: "is a directory"},
		"two operators":      {files: map[string]string{"manifests/x.yaml": sourcestest.Bundle("mesh.v2")["manifests/csv.yaml"]}, reason: sources.ReasonInvalid, want: "has 2 ClusterServiceVersions"},
		"no operator":        {files: map[string]string{"manifests/csv.yaml": ""}, reason: sources.ReasonInvalid, want: "has 0 ClusterServiceVersions"},
		"another operator":   {operator: "mesh.v2", reason: sources.ReasonInvalid, want: `that of "mesh.v1", and not of "mesh.v2"`},
		"too many files":     {files: map[string]string{"manifests/x.yaml": "a: b", "manifests/y.yaml": "a: b", "manifests/z.yaml": "a: b"}, reason: sources.ReasonInvalid, want: "MaxFiles"},
		"limit of the image": {limits: image.Limits{FileSize: 100}, reason: sources.ReasonUnreadable, want: "FileSize"},
	} {
		t.Run(name, func(t *testing.T) {
			l := ocitest.NewLayout()
			d := bundleImage(l, tt.files, tt.labels)
			l.Write(d)
			source := checktest.Get(image.FromFS(l.FS, image.Options{Limits: tt.limits}))(t)
			u := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source, MaxFiles: 5}))(t)
			if tt.operator == "" {
				tt.operator = "mesh.v1"
			}
			_, err := u.Unpack(t.Context(), request("r.example/x@"+d.Digest, tt.operator))
			checktest.ErrorHas(t, tt.want, err)
			checktest.ErrorHas(t, tt.reason, err)
		})
	}
}

// What was read is kept, and so are failures until it is time for the next attempt.
func TestUnpackerKeeps(t *testing.T) {
	images := sourcestest.NewImages()
	source, store := count(t, images.Layout)
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	u := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source, MaxKept: 1, Clock: now}))(t)
	read := func(name string) int64 {
		t.Helper()
		before := store.blobs.Load()
		checktest.OK(t, checktest.Err(u.Unpack(t.Context(), request(images.Spec(name), name))))
		return store.blobs.Load() - before
	}
	checktest.Equal(t, 2, read("mesh.v1"), "blobs of the first time")
	checktest.Equal(t, 0, read("mesh.v1"), "blobs of the second")
	checktest.Equal(t, 2, read("mesh.v2"), "blobs of another")
	checktest.Equal(t, 2, read("mesh.v1"), "blobs of one that did not fit in")

	store.fail = errors.New("away")
	r := request(images.Spec("mesh.v3"), "mesh.v3")
	failure := &install.UnpackError{}
	_, err := u.Unpack(t.Context(), r)
	if !errors.As(err, &failure) || failure.Reason != sources.ReasonUnreadable || !strings.Contains(failure.Message, "away") {
		t.Errorf("the error is %v", err)
	}
	store.fail = nil
	checktest.ErrorHas(t, "away", checktest.Err(u.Unpack(t.Context(), r)))
	now.SetTime(now.Now().Add(5 * time.Minute))
	checktest.Equal(t, 2, read("mesh.v3"), "blobs of the next attempt")
	store.fail = errors.New("away")
	checktest.OK(t, checktest.Err(u.Unpack(t.Context(), r)))
}

// Tags are refused unless they are allowed. Their image is kept by its digest.
func TestUnpackerTags(t *testing.T) {
	images := sourcestest.NewImages()
	source, _ := count(t, images.Layout)
	r := request(sourcestest.Host+"/"+sourcestest.Repository("mesh.v1")+":v1", "mesh.v1")
	strict := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source}))(t)
	checktest.ErrorHas(t, "no digest by which the image could be verified", checktest.Err(strict.Unpack(t.Context(), r)))
	u := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source, Tags: true}))(t)
	checktest.Equal(t, 3, len(checktest.Get(u.Unpack(t.Context(), r))(t)), "objects")
	r.Lookup.Path += "x"
	checktest.ErrorHas(t, "file does not exist", checktest.Err(u.Unpack(t.Context(), r)))
}

// An attempt ends with the time that it has, or with the context, which is not a failure
// of the image.
func TestUnpackerTimes(t *testing.T) {
	images := sourcestest.NewImages()
	source := checktest.Get(image.FromStore(hanging{}, image.Options{}))(t)
	u := checktest.Get(sources.NewUnpacker(sources.UnpackerOptions{Source: source}))(t)
	r := request(images.Spec("mesh.v1"), "mesh.v1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	checktest.ErrorIs(t, context.DeadlineExceeded, checktest.Err(u.Unpack(ctx, r)))
	r.Limits.Timeout = time.Millisecond
	checktest.ErrorHas(t, "ImageUnreadable: the image was not read within 1ms", checktest.Err(u.Unpack(t.Context(), r)))
}
