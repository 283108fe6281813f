// A window on something larger: drag to move, pinch or Ctrl + wheel to zoom, buttons for both, and
// keys. The content is one element that is moved and scaled.

const LEAST = 0.12;
const MOST = 2.5;
export const STEP = 1.3;
const EDGE = 60; // pixels of the content that always stay in view
const TAP = 5; // pixels below which a press is no drag

export class Viewport {
  // size: {width, height} of the content.
  constructor(frame, content, size) {
    Object.assign(this, { frame, content, size, scale: 1, x: 0, y: 0 });
    this.pointers = new Map();
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      frame.addEventListener(end, (event) => this.release(event));
    }
    frame.addEventListener("click", (event) => this.swallow(event), true);
    frame.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    frame.addEventListener("keydown", (event) => this.key(event));
    frame.addEventListener("scroll", () => frame.scrollTo(0, 0)); // a focus must not scroll it
  }

  get room() {
    return { width: this.frame.clientWidth, height: this.frame.clientHeight };
  }

  // Scale at which everything is in view.
  get fitting() {
    const { width, height } = this.room;
    return Math.min(width / this.size.width, height / this.size.height, 1);
  }

  fit() {
    const { width, height } = this.room;
    const scale = Math.max(this.fitting, LEAST);
    const middle = (room, size) => (room - size * scale) / 2;
    this.move(middle(width, this.size.width), middle(height, this.size.height), scale);
  }

  // Put a box of the content, {left, top, width, height}, into the middle of the upper part.
  centre({ left, top, width }, scale = this.scale) {
    this.move(this.room.width / 2 - (left + width / 2) * scale, 16 - top * scale, scale);
  }

  // Move no more than it takes to see a box.
  reveal({ left, top, width, height }) {
    const into = (at, start, length, room) => {
      const [first, last] = [start * this.scale + at, (start + length) * this.scale + at];
      if (first < 8) return at + 8 - first;
      return last > room - 8 ? at + room - 8 - last : at;
    };
    const { width: across, height: down } = this.room;
    this.move(into(this.x, left, width, across), into(this.y, top, height, down), this.scale);
  }

  zoom(factor, atX = this.room.width / 2, atY = this.room.height / 2) {
    const scale = Math.min(Math.max(this.scale * factor, Math.min(LEAST, this.fitting)), MOST);
    const ratio = scale / this.scale;
    this.move(atX - (atX - this.x) * ratio, atY - (atY - this.y) * ratio, scale);
  }

  move(x, y, scale) {
    const { width, height } = this.room;
    const within = (at, room, size) => Math.min(Math.max(at, EDGE - size * scale), room - EDGE);
    this.scale = scale;
    this.x = within(x, width, this.size.width);
    this.y = within(y, height, this.size.height);
    this.content.style.transform = `translate(${this.x}px, ${this.y}px) scale(${scale})`;
  }

  press(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.travelled = this.pointers.size > 1 ? TAP : 0;
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    this.travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (this.travelled < TAP) return;
    if (!this.frame.hasPointerCapture(event.pointerId)) {
      this.frame.setPointerCapture(event.pointerId);
    }
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    this.pointers.set(event.pointerId, now);
    if (!other) {
      this.move(this.x + now.x - before.x, this.y + now.y - before.y, this.scale);
      return;
    }
    const spread = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
    const corner = this.frame.getBoundingClientRect();
    const middle = [(now.x + other.x) / 2 - corner.left, (now.y + other.y) / 2 - corner.top];
    this.zoom(spread(now) / spread(before), ...middle);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
  }

  // The end of a drag is no click on what lies under it.
  swallow(event) {
    if (this.travelled >= TAP && event.detail > 0) {
      event.stopPropagation();
      event.preventDefault();
    }
    this.travelled = 0;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const corner = this.frame.getBoundingClientRect();
    const at = [event.clientX - corner.left, event.clientY - corner.top];
    this.zoom(Math.exp(-event.deltaY * 0.0025), ...at);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = { "+": () => this.zoom(STEP), "-": () => this.zoom(1 / STEP), 0: () => this.fit() };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }
}
