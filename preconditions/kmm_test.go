package preconditions_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterupdate/clusterupdate/internal/checktest"
	"github.com/clusterupdate/clusterupdate/preconditions"
)

const targetImage = "quay.io/ocp/release@sha256:2222222222222222222222222222222222222222222222222222222222222222"

func TestKernelModules(t *testing.T) {
	module := func(namespace, name string) *unstructured.Unstructured {
		return object("kmm.sigs.x-k8s.io/v1beta1", "Module", namespace, name, nil)
	}
	preflight := func(version, name string, created int, spec, status map[string]any) *unstructured.Unstructured {
		u := object("kmm.sigs.x-k8s.io/"+version, "PreflightValidationOCP", "", name, map[string]any{"spec": spec, "status": status})
		u.SetCreationTimestamp(metav1.Unix(int64(created), 0))
		return u
	}
	result := func(namespace, name, stage, status, why string) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "verificationStage": stage, "verificationStatus": status, "statusReason": why}
	}
	modules := func(all ...any) map[string]any { return map[string]any{"modules": all} }
	byImage := map[string]any{"releaseImage": targetImage}
	byKernel := map[string]any{"kernelVersion": "5.14.0-570", "dtkImage": "d"}
	kernel := func(in *preconditions.Input) { in.TargetKernel = "5.14.0-570" }
	const done = "Passed\nInfo PreflightDone: Out-of-tree kernel modules are verified for the target"
	const notRun = "Failed\nWarning PreflightNotRun: Out-of-tree kernel modules have not been verified for the target: "
	const failed = "Failed\nBlocking ModuleNotVerified: Out-of-tree kernel modules failed to verify for the target: "
	target := "4.19.1@" + targetImage
	cases := []checkCase{
		{name: "no modules", want: "NotApplicable\nInfo NotApplicable: the cluster has no out-of-tree kernel modules"},
		{name: "no such kind", fail: map[string]error{"Module": noKind("Module")}, want: "NotApplicable\nInfo NotApplicable: the cluster has no out-of-tree kernel modules"},
		{name: "no preflight", objects: []any{module("b", "x"), module("a", "y")}, want: notRun + "a/y, b/x"},
		{name: "preflight not served", objects: []any{module("b", "x")}, fail: map[string]error{"PreflightValidationOCP": noKind("PreflightValidationOCP")}, want: notRun + "b/x"},
		{name: "for another image", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, map[string]any{"releaseImage": "quay.io/ocp/release@sha256:1"}, nil)}, want: notRun + "b/x"},
		{name: "verified", objects: []any{module("b", "x"), module("a", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("a", "x", "image", "true", ""), result("b", "x", "sign", "True", "")))}, want: done},
		{name: "the image elsewhere", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, map[string]any{"releaseImage": "mirror.local/r@" + targetImage[len("quay.io/ocp/release@"):]}, modules(result("b", "x", "image", "true", "")))}, want: done},
		{name: "by kernel", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Done", "Success", "")))}, want: done},
		{name: "kernel not given", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Done", "Success", "")))},
			want: "Unknown\nWarning KernelVersionUnknown: the kernel version of the target is not given, by which preflight validations are told apart here"},
		{name: "another kernel", input: func(in *preconditions.Input) { in.TargetKernel = "6" }, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, nil)}, want: notRun + "b/x"},
		{name: "failed", objects: []any{module("b", "x"), module("a", "x"), module("a", "y"), preflight("v1beta2", "p", 1, byImage, modules(result("a", "x", "build", "false", "no compiler"), result("b", "x", "sign", "ERROR", ""), result("a", "y", "image", "true", "")))},
			want: failed + "a/x (stage build: no compiler), b/x (stage sign)"},
		{name: "failed, new words", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Image", "Failure", "m")))}, want: failed + "b/x (stage Image: m)"},
		{name: "pending", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "build", "unknown", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (unknown, stage build)"},
		{name: "in progress", input: kernel, objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byKernel, modules(result("b", "x", "Image", "InProgress", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (InProgress, stage Image)"},
		{name: "another word", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "Requeued", "later", "")))},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (later, stage Requeued)"},
		{name: "not reported", objects: []any{module("b", "x"), preflight("v1beta2", "p", 1, byImage, nil)},
			want: "Unknown\nWarning PreflightPending: preflight validation p has not verified yet: b/x (not reported)"},
		{name: "one failed, one pending", objects: []any{module("b", "x"), module("b", "y"), preflight("v1beta2", "p", 1, byImage, modules(result("b", "x", "build", "false", "")))},
			want: failed + "b/x (stage build)\nWarning PreflightPending: preflight validation p has not verified yet: b/y (not reported)"},
		{name: "the newest counts", objects: []any{module("b", "x"), preflight("v1beta2", "a", 1, byImage, modules(result("b", "x", "build", "false", ""))), preflight("v1beta2", "b", 2, byImage, modules(result("b", "x", "image", "true", "")))}, want: done},
		{name: "preflights not known", objects: []any{module("b", "x")}, fail: map[string]error{"PreflightValidationOCP": errors.New("boom")}, want: "Unknown\nWarning UnknownError: boom"},
		{name: "malformed preflight", objects: []any{module("b", "x"), malformed("kmm.sigs.x-k8s.io/v1beta2", "PreflightValidationOCP", "p")},
			want: "Unknown\nWarning UnknownError: PreflightValidationOCP p: spec: got a JSON string, want operators.PreflightSpec"},
	}
	for i := range cases {
		cases[i].target = target
	}
	runCases(t, checkNamed(t, "KernelModules"), cases)

	// The older version of the API, which alone is served.
	for name, status := range map[string]map[string]any{
		"by namespace and name": {"crStatuses": map[string]any{"b/x": map[string]any{"verificationStage": "Image", "verificationStatus": "True"}}},
		"by name":               {"crStatuses": map[string]any{"x": map[string]any{"verificationStage": "Image", "verificationStatus": "True"}}},
	} {
		r := onlyVersion{reader(t, clusterVersion("4.18.5@A"), module("b", "x"), preflight("v1beta1", "p", 1, byImage, status))}
		got := brief(run(t, []preconditions.Check{checkNamed(t, "KernelModules")}, input(r, clusterVersion("4.18.5@A"), target)).Results[0])
		checktest.Equal(t, done, got, "%s", name)
	}
}
