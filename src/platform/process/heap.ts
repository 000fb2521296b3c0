// The door to V8's settings. One is changed: the nursery of new objects stays at its first size, because an agent
// is judged by its memory and a cycle makes many short-lived objects (measured on policy-10k: a peak of 122 MB in
// place of 153, in the same time).
import { setFlagsFromString } from 'node:v8';

/** Keeps the young generation small; called once, before the first cycle of a process. */
export function keepHeapSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
