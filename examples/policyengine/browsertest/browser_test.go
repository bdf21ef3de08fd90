package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/clusterupdate/clusterupdate/examples/policyengine/page"
	"github.com/clusterupdate/clusterupdate/examples/policyengine/source"
	"github.com/clusterupdate/clusterupdate/graph/graphdata"
	"github.com/clusterupdate/clusterupdate/internal/checktest"
)

// sample is the address of a page that shows the sample.
func sample(t *testing.T) string {
	t.Helper()
	s := source.New(source.Options{})
	checktest.OK(t, checktest.Err(s.Load(t.Context())))
	return serve(t, s.Last)
}

func serve(t *testing.T, state func() source.Last) string {
	server := httptest.NewServer(page.New(page.Options{State: state}))
	t.Cleanup(server.Close)
	return server.URL
}

// tab opens a tab of a browser of its own. Errors of the console, and what the
// Content-Security-Policy refuses, fail the test.
func tab(t *testing.T) context.Context {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no browser: install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1400, 1000),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(time.Minute))
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	var mu sync.Mutex
	run(t, ctx) // starts the browser
	checktest.OK(t, chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
				t.Errorf("console: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			t.Errorf("exception: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				t.Errorf("console: %v", e.Args)
			}
		}
	}))
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	checktest.OK(t, chromedp.Do(ctx, actions...))
}

// text is that of an element, with one space for any.
func text(t *testing.T, ctx context.Context, selector chromedp.CSS) string {
	t.Helper()
	s := checktest.Get(chromedp.Run(ctx, chromedp.Text(selector)))(t)
	return strings.Join(strings.Fields(s), " ")
}

// value is that of an expression of the page.
func value[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	return checktest.Get(chromedp.Run(ctx, chromedp.Evaluate[T](expression)))(t)
}

// call calls a method of the DevTools protocol.
func call[P, R any](method cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, method, params)
		return err
	})
}

// until waits for a condition of the page.
func until(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !value[bool](t, ctx, condition); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never holds: %s", condition)
		}
	}
}

// choose chooses from a list as a user does.
func choose(t *testing.T, ctx context.Context, list, name string) {
	t.Helper()
	value[bool](t, ctx, fmt.Sprintf(`(() => {const s = document.getElementById(%q); s.value = %q; return s.dispatchEvent(new Event("change", {bubbles: true}))})()`, list, name))
	until(t, ctx, fmt.Sprintf(`document.getElementById(%q).value === %q && document.title.includes(document.getElementById("channel").value + " " + document.getElementById("arch").value) && new URL(location).searchParams.get(%q) === %q`, list, name, list, name))
}

// TestChoose: the lists show the updates of what is chosen.
func TestChoose(t *testing.T) {
	ctx := tab(t)
	run(t, ctx, chromedp.Navigate(sample(t)))
	choose(t, ctx, "channel", "fast-4.21")
	choose(t, ctx, "version", "4.20.3")
	until(t, ctx, `document.getElementById("updates").textContent === "Updates of 4.20.3"`)
	if got, want := text(t, ctx, "ul.updates"), "4.21.4 Recommended 4.21.3 Recommended 4.21.2 Recommended 4.21.1 Recommended 4.21.0 Conditional RouterReload 4.20.6 Recommended 4.20.5 Recommended 4.20.4 Recommended"; got != want {
		t.Errorf("updates: %s", got)
	}
	choose(t, ctx, "arch", "arm64")
	choose(t, ctx, "version", "4.20.3")
	until(t, ctx, `document.querySelector("ul.updates").textContent.includes("ArmClocks")`)
	run(t, ctx, chromedp.NavigateBack())
	until(t, ctx, `document.getElementById("updates").textContent === "Updates of 4.20.0" && document.getElementById("arch").value === "arm64"`)
}

const edge chromedp.CSS = `a.edge[aria-label^="4.20.3 → 4.21.0"]`

// TestEdge: an edge shows its risks and why it is there, by the pointer and by the
// keyboard.
func TestEdge(t *testing.T) {
	ctx := tab(t)
	url := sample(t) + "/?channel=stable-4.21&arch=amd64&version=4.20.3"
	for name, activate := range map[string]chromedp.Action[chromedp.Void]{
		"pointer": chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			at, err := chromedp.Evaluate[[]float64](`(() => {const p = document.querySelector('`+string(edge)+` .hit'), m = p.getPointAtLength(p.getTotalLength() * 0.8).matrixTransform(p.getScreenCTM()); return [m.x, m.y]})()`)(ctx, tab)
			if err != nil {
				return err
			}
			_, err = chromedp.MouseClickXY(at[0], at[1])(ctx, tab)
			return err
		}),
		"keyboard": chromedp.Steps(chromedp.Focus(edge), chromedp.KeyEvent(kb.Enter)),
	} {
		t.Run(name, func(t *testing.T) {
			run(t, ctx, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#svg")), activate)
			until(t, ctx, `document.getElementById("detail").textContent === "4.20.3 → 4.21.0"`)
			for _, want := range []string{"Conditional", "RouterReload", "Requests may fail", "Declared by previous releases.jsonl:", "Conditional by from: RouterReload blocked-edges/4.21.0-RouterReload.yaml:2"} {
				checktest.Has(t, text(t, ctx, "#details"), want)
			}
			until(t, ctx, `document.activeElement.id === "detail"`)
		})
	}
}

// TestKeyboard: the focus goes through the page in its order, and every stop has a
// name and a role.
func TestKeyboard(t *testing.T) {
	ctx := tab(t)
	run(t, ctx, chromedp.Navigate(sample(t)+"/?channel=stable-4.20&arch=amd64&version=4.20.4"), chromedp.WaitVisible(chromedp.CSS("#svg")))
	var order []string
	for range 12 {
		run(t, ctx, chromedp.KeyEvent(kb.Tab))
		order = append(order, value[string](t, ctx, `(e => e.id || e.getAttribute("aria-label") || e.textContent)(document.activeElement)`))
	}
	want := []string{"Skip to the updates", "channel", "arch", "version", "Show", "closer", "farther", "fit", "canvas",
		"4.20.0 → 4.20.4, recommended", "4.20.1 → 4.20.4, recommended", "4.20.2 → 4.20.4, recommended"}
	if !slices.Equal(order, want) {
		t.Errorf("focus goes to %q, want %q", order, want)
	}
	tree := checktest.Get(chromedp.Run(ctx,
		func(ctx context.Context, tab *chromedp.Target) (accessibility.GetFullAXTreeResult, error) {
			return cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		}))(t)
	seen := map[string]bool{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		var role, name string
		json.Unmarshal(n.Role.Value, &role)
		if n.Name != nil {
			json.Unmarshal(n.Name.Value, &name)
		}
		seen[role+" "+name] = true
		if name == "" && slices.Contains([]string{"link", "button", "combobox", "region", "heading"}, role) {
			t.Errorf("a %s has no name", role)
		}
	}
	for _, want := range []string{"heading Update graph", "combobox Channel", "combobox Architecture", "combobox Current version", "button Zoom in",
		"link 4.20.4, 1 recommended update, 0 conditional updates", "link 4.20.4 → 4.20.5, recommended", "region Updates of 4.20.4", "list Releases"} {
		if !seen[want] {
			t.Errorf("nothing is a %s", want)
		}
	}
}

// contrast returns the texts and lines of the page that can hardly be seen: it looks
// for the paper that each lies on.
const contrast = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgb = c => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const paper = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return rgb("Canvas"); };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length || e.closest("option")) continue;
    const s = getComputedStyle(e), inSVG = e instanceof SVGElement, box = inSVG && e.parentElement.querySelector("rect");
    const on = box ? rgb(getComputedStyle(box).fill) : paper(inSVG ? e.ownerSVGElement.parentElement : e);
    const r = ratio(rgb(inSVG ? s.fill : s.color), on);
    if (r < 4.5) bad.push(e.tagName + " " + e.textContent.trim().slice(0, 30) + " " + r.toFixed(2));
  }
  for (const e of document.querySelectorAll(".edge .line")) {
    const r = ratio(rgb(getComputedStyle(e).stroke), paper(document.getElementById("canvas")));
    if (r < 4.5) bad.push("edge " + r.toFixed(2));
  }
  return bad;
})()`

// TestLooks: in both colour schemes all can be read, and on wide and narrow screens
// nothing is wider than those. With BROWSERTEST_PICTURES pictures of the page are
// kept in that directory.
func TestLooks(t *testing.T) {
	ctx := tab(t)
	url := sample(t) + "/?channel=stable-4.21&arch=amd64&version=4.20.1&to=4.21.0"
	grounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1400, 400} {
			run(t, ctx, call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
				chromedp.EmulateViewport(width, 1000), chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#svg")))
			bad, wide := value[[]string](t, ctx, contrast), value[bool](t, ctx, `document.documentElement.scrollWidth > innerWidth`)
			ground := value[string](t, ctx, `getComputedStyle(document.body).backgroundColor`)
			grounds[ground] = true
			if len(bad) > 0 || wide {
				t.Errorf("%s, %d pixels: wider than the window: %v; hard to read: %q", scheme, width, wide, bad)
			}
			if dir := os.Getenv("BROWSERTEST_PICTURES"); dir != "" {
				picture := checktest.Get(chromedp.Run(ctx, chromedp.FullScreenshot(100)))(t)
				checktest.Good(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.png", scheme, width)), picture, 0o644))
			}
		}
	}
	checktest.Equal(t, 2, len(grounds), "grounds of both schemes: %v", grounds)
}

// TestWithoutScript: links and the form do all that matters.
func TestWithoutScript(t *testing.T) {
	ctx := tab(t)
	run(t, ctx, call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(sample(t)+"/?channel=stable-4.21&version=4.20.3"),
		chromedp.Click(chromedp.CSS(`ul.updates a[href*="to=4.21.0"]`)), chromedp.WaitVisible(chromedp.CSS(".risk")))
	checktest.Has(t, text(t, ctx, "#details"), "blocked-edges/4.21.0-RouterReload.yaml:2")
}

// large is a channel of 1,000 releases in five minors.
func large(t *testing.T) *graphdata.Snapshot {
	t.Helper()
	var versions []string
	var releases []graphdata.Release
	for minor := 20; minor < 25; minor++ {
		for patch := range 200 {
			version := fmt.Sprintf("4.%d.%d", minor, patch)
			releases = append(releases, graphdata.Release{Version: version, Arch: "amd64", Image: "registry.example/r@sha256:" + version, Previous: versions[max(0, len(versions)-40):]})
			versions = append(versions, version)
		}
	}
	tree := checktest.Get(graphdata.Load(t.Context(), fstest.MapFS{
		"version": {Data: []byte("1.1.0")}, "raw/metadata.json": {Data: []byte("{}")}, "blocked-edges/README.md": {},
		"channels/large-4.24.yaml": {Data: []byte("name: large-4.24\nversions: [" + strings.Join(versions, ", ") + "]\n")},
	}, graphdata.LoadOptions{}))(t)
	return checktest.Get(graphdata.Build(tree, releases, graphdata.BuildOptions{}))(t)
}

// TestLarge: 1,000 releases are laid out within a second, and no task takes more than
// 50 ms while the picture is moved, by the trace of the browser. Other programs take
// their share of a machine, so the best of a few trials counts.
func TestLarge(t *testing.T) {
	ctx := tab(t)
	snapshot := large(t)
	url := serve(t, func() source.Last { return source.Last{Snapshot: snapshot, Loaded: time.Now()} }) + "/?channel=large-4.24&version=4.22.100"
	layout, longest := math.Inf(1), math.Inf(1)
	for range 5 {
		run(t, ctx, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS("#svg")))
		layout = min(layout, value[float64](t, ctx, `(n => n.loadEventEnd - n.startTime)(performance.getEntriesByType("navigation")[0])`))
		run(t, ctx, chromedp.Sleep(300*time.Millisecond)) // what loading the page began ends
		longest = min(longest, panned(t, ctx))
		if layout <= 1000 && longest <= 50 {
			break
		}
	}
	nodes := value[int](t, ctx, `document.querySelectorAll(".node").length`)
	t.Logf("%d releases laid out within %.0f ms, longest task while panning %.1f ms", nodes, layout, longest)
	if nodes != 1000 || layout > 1000 || longest > 50 {
		t.Errorf("%d releases laid out within %.0f ms, longest task %.1f ms; want 1000, 1000 and 50", nodes, layout, longest)
	}
}

// panned moves the picture with the pointer and returns the longest task of the page's
// main thread meanwhile, in milliseconds.
func panned(t *testing.T, ctx context.Context) (longest float64) {
	t.Helper()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	complete := make(chan struct{})
	var mu sync.Mutex
	type thread struct{ Pid, Tid int }
	tasks, names := map[thread]float64{}, map[thread]string{} // the longest of each, in milliseconds
	var broken error
	err := chromedp.Listen(listening, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, v := range e.Value {
				var task struct {
					thread
					Name      string
					Dur, TDur float64 // microseconds; those of the processor, where they are known
					Args      struct{ Name string }
				}
				if err := json.Unmarshal(v, &task); err != nil {
					broken = errors.Join(broken, err)
				}
				switch {
				case task.Name == "thread_name":
					names[task.thread] = task.Args.Name
				case strings.HasSuffix(task.Name, "RunTask"):
					if task.TDur > 0 {
						task.Dur = task.TDur
					}
					tasks[task.thread] = max(tasks[task.thread], task.Dur/1000)
				}
			}
		case *tracing.EventTracingComplete:
			close(complete)
		}
	})
	checktest.OK(t, err)
	moves := []chromedp.Action[chromedp.Void]{chromedp.MouseEvent(chromedp.MousePressed, 700, 500, chromedp.ButtonLeft)}
	for i := range 40 {
		moves = append(moves, chromedp.MouseEvent(chromedp.MouseMoved, 700-float64(i)*12, 500-float64(i)*5, chromedp.ButtonLeft))
	}
	moves = append(moves, chromedp.MouseEvent(chromedp.MouseReleased, 220, 300, chromedp.ButtonLeft))
	value[bool](t, ctx, `document.getElementById("canvas").scrollTo(300, 300), true`)
	run(t, ctx, chromedp.Sleep(200*time.Millisecond))
	const left = `document.getElementById("canvas").scrollLeft`
	before := value[float64](t, ctx, left)
	run(t, ctx, call(tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"}}}),
		chromedp.Steps(moves...), call(tracing.End, cdp.Empty{}))
	select {
	case <-complete:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	after := value[float64](t, ctx, left)
	mu.Lock()
	defer mu.Unlock()
	found := false
	for at, ms := range tasks {
		if names[at] == "CrRendererMain" {
			found, longest = true, max(longest, ms)
		}
	}
	if broken != nil || !found || after <= before {
		t.Fatalf("%v; threads %v; moved from %g to %g", broken, names, before, after)
	}
	return longest
}

// TestWay: the way to a version that is not the next one is shown, and what lint
// finds about both.
func TestWay(t *testing.T) {
	tree := checktest.Get(graphdata.Load(t.Context(), fstest.MapFS{
		"version":           {Data: []byte("1.1.0\n")},
		"raw/metadata.json": {Data: []byte("{}")}, "blocked-edges/README.md": {},
		"channels/fast-4.30.yaml": {Data: []byte("name: fast-4.30\nversions: [4.30.0, 4.30.1, 4.30.2]\n")},
	}, graphdata.LoadOptions{}))(t)
	release := func(version string, previous ...string) graphdata.Release {
		return graphdata.Release{Version: version, Arch: "amd64", Image: "registry.example/r@sha256:" + version, Previous: previous}
	}
	releases := []graphdata.Release{release("4.30.0"), release("4.30.1", "4.30.0"), release("4.30.2", "4.30.1")}
	snapshot := checktest.Get(graphdata.Build(tree, releases, graphdata.BuildOptions{}))(t)
	state := source.Last{Snapshot: snapshot, Loaded: time.Now(), Findings: []graphdata.Problem{{File: "channels/fast-4.30.yaml", Message: "Release 4.30.2 present in fast-4.30"}}}
	ctx := tab(t)
	run(t, ctx, chromedp.Navigate(serve(t, func() source.Last { return state })+"/?version=4.30.0"),
		chromedp.Click("#ask button"), chromedp.WaitVisible("ol.way"))
	checktest.Equal(t, "4.30.0 → 4.30.1 Recommended 4.30.1 → 4.30.2 Recommended", text(t, ctx, "ol.way"), "way")
	checktest.Equal(t, "Findings about 4.30.0 and 4.30.2", text(t, ctx, "#findings"), "findings")
}
