// Shows what is chosen without loading the page anew, and moves and zooms the
// picture. Without it, all links and the form work as they are.
"use strict";

const $ = id => document.getElementById(id);
const zooms = [0.3, 0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.6, 2];
let zoom = 1;
let place = null; // of the picture, while it stays the same one

// start makes the picture of the page work, and shows the part that matters.
function start() {
  const canvas = $("canvas"), svg = $("svg");
  if (!svg) return;
  document.querySelector(".tools").hidden = false;
  const box = svg.viewBox.baseVal;
  const scale = to => {
    const x = (canvas.scrollLeft + canvas.clientWidth / 2) / zoom, y = (canvas.scrollTop + canvas.clientHeight / 2) / zoom;
    zoom = to;
    svg.setAttribute("width", box.width * zoom);
    svg.setAttribute("height", box.height * zoom);
    canvas.scrollTo(x * zoom - canvas.clientWidth / 2, y * zoom - canvas.clientHeight / 2);
  };
  $("closer").onclick = () => scale(zooms.find(z => z > zoom + 0.001) || zoom);
  $("farther").onclick = () => scale(zooms.findLast(z => z < zoom - 0.001) || zoom);
  $("fit").onclick = () => scale(Math.max(zooms[0], Math.min(1, canvas.clientWidth / box.width, canvas.clientHeight / box.height)));
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    (e.deltaY < 0 ? $("closer") : $("farther")).click();
  }, { passive: false });
  if (zoom !== 1) scale(zoom);
  if (place) {
    canvas.scrollTo(place.x, place.y);
  } else {
    const now = svg.querySelector(".current rect");
    if (now) canvas.scrollTo(now.x.baseVal.value * zoom - 40, now.y.baseVal.value * zoom - canvas.clientHeight / 3);
  }
  drag(canvas);
}

// drag moves the picture with the pointer. What was a drag is not a click. No style
// changes meanwhile: all of the picture would be looked at anew.
function drag(canvas) {
  let from = null, moved = false;
  canvas.addEventListener("pointerdown", e => {
    if (e.pointerType === "mouse" && e.button === 0) from = { x: e.clientX + canvas.scrollLeft, y: e.clientY + canvas.scrollTop, at: [e.clientX, e.clientY] };
    moved = false;
  });
  canvas.addEventListener("pointermove", e => {
    if (!from || !(e.buttons & 1)) return;
    if (!moved && Math.hypot(e.clientX - from.at[0], e.clientY - from.at[1]) > 4) {
      moved = true;
      canvas.setPointerCapture(e.pointerId);
    }
    if (moved) canvas.scrollTo(from.x - e.clientX, from.y - e.clientY);
  });
  const end = () => { from = null; };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("click", e => { if (moved) { e.preventDefault(); e.stopPropagation(); moved = false; } }, true);
  canvas.addEventListener("dragstart", e => e.preventDefault());
}

// show fetches the page of an address and takes over what differs. What was
// asked for last is shown, in whatever order answers come.
let asked = 0;
async function show(url, then) {
  const number = ++asked;
  let text;
  try {
    text = await (await fetch(url)).text();
  } catch {
    location.assign(url);
    return;
  }
  if (number !== asked) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const view = page.getElementById("view"), choose = page.getElementById("choose");
  if (!view || !choose || !$("choose")) {
    location.assign(url);
    return;
  }
  const old = $("view"), canvas = $("canvas"), focused = document.activeElement && document.activeElement.id;
  const same = canvas && old.dataset.channel === view.dataset.channel && old.dataset.arch === view.dataset.arch;
  place = same ? { x: canvas.scrollLeft, y: canvas.scrollTop } : null;
  document.title = page.title;
  for (const id of ["channel", "arch", "version"]) $(id).replaceWith(document.adoptNode(page.getElementById(id)));
  const said = page.getElementById("said"); // of a status that stays, changes are read out
  old.replaceWith(document.adoptNode(view));
  if (said) setTimeout(() => { said.textContent += " "; }, 100);
  start();
  if (then) then();
  else if (focused && $(focused)) $(focused).focus({ preventScroll: true });
}

// chosen is the address that the form asks for. Another channel has other versions.
function chosen(changed) {
  const q = new URLSearchParams(new FormData($("choose")));
  if (changed && changed !== "version") q.delete("version");
  return "/?" + q;
}

function go(url, then) {
  history.pushState(null, "", url);
  return show(url, then);
}

document.addEventListener("change", e => {
  if (e.target.closest("#choose")) go(chosen(e.target.id));
});
document.addEventListener("submit", e => {
  if (e.target.id !== "choose") return;
  e.preventDefault();
  go(chosen(), () => $("updates").focus());
});
document.addEventListener("click", e => {
  const a = e.target.closest("a[data-show]");
  if (!a || !$("choose") || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  const inside = a.closest("svg"), href = a.getAttribute("href");
  go(href, () => {
    if (a.dataset.show === "update") {
      $("detail").focus({ preventScroll: !!inside && innerWidth > 960 });
    } else {
      const again = inside && $("svg").querySelector(".current");
      (again || $("updates")).focus({ preventScroll: true });
    }
  });
});
addEventListener("popstate", () => show(location.pathname + location.search));
start();
