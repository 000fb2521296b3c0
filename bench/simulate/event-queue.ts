// The queue of wake times: a heap of numbered hosts by their time, for millions of hosts.

export interface Wake {
  readonly atMs: number;
  readonly host: number;
}

export class EventQueue {
  readonly #heap: Wake[] = [];

  push(wake: Wake): void {
    const heap = this.#heap;
    let at = heap.push(wake) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || parent.atMs <= wake.atMs) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = wake;
  }

  /** Removes the first host. @returns it; undefined if its time is after `untilMs`, or the queue is empty */
  pop(untilMs: number): Wake | undefined {
    const heap = this.#heap;
    const [first] = heap;
    if (first === undefined || first.atMs > untilMs) return undefined;
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) this.#sink(last);
    return first;
  }

  #sink(wake: Wake): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [heap[below], heap[below + 1]];
      if (left === undefined) break;
      if (right !== undefined && right.atMs < left.atMs) below++;
      const child = heap[below];
      if (child === undefined || child.atMs >= wake.atMs) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = wake;
  }
}
