// Computes the instructions that produce one file from another: copies of the base, and inserts between them. The common beginning
// and end are found first, so that one changed line costs one comparison; chunks find moved content. Deterministic; time is linear
// in both lengths, and memory is bounded.
import { type ByteSource, commonAhead, commonBehind } from './byte-source.js';
import { ChunkIndex, ChunkScanner, chunkRule } from './chunks.js';
import { type Instruction, minCopyBytes } from './delta-format.js';

/** @returns the instructions that produce `next` from `base`, in order */
export function* matchBytes(base: ByteSource, next: ByteSource): Generator<Instruction> {
  const shorter = Math.min(base.length, next.length);
  const head = worthCopying(commonAhead({ source: base, at: 0 }, { source: next, at: 0 }, shorter));
  const baseEnd = { source: base, at: base.length };
  const nextEnd = { source: next, at: next.length };
  const tail = worthCopying(commonBehind(baseEnd, nextEnd, shorter - head));
  if (head > 0) yield { kind: 'copy', offset: 0, length: head };
  const changed = { from: head, to: next.length - tail };
  yield* matchChanged(base, next, { changed, baseFrom: head, baseTo: base.length - tail });
  if (tail > 0) yield { kind: 'copy', offset: base.length - tail, length: tail };
}

function worthCopying(length: number): number {
  return length < minCopyBytes ? 0 : length;
}

interface Middle {
  readonly changed: { readonly from: number; readonly to: number };
  readonly baseFrom: number;
  readonly baseTo: number;
}

function* matchChanged(base: ByteSource, next: ByteSource, middle: Middle): Generator<Instruction> {
  const { changed, baseFrom, baseTo } = middle;
  const { from, to } = changed;
  let encodedTo = from;
  if (to - from >= minCopyBytes && baseTo - baseFrom >= minCopyBytes) {
    const rule = chunkRule(baseTo - baseFrom);
    const index = new ChunkIndex(base, { rule, from: baseFrom, to: baseTo });
    const scanner = new ChunkScanner(next, rule);
    for (let at = from; at < to; ) {
      scanner.scan(at, to);
      const found = index.find(scanner.fingerprint);
      const copy = found === undefined ? undefined : grow(base, next, { found, at, encodedTo, to });
      if (copy === undefined) {
        at += scanner.length;
        continue;
      }
      if (copy.at > encodedTo) yield { kind: 'insert', offset: encodedTo, length: copy.at - encodedTo };
      yield { kind: 'copy', offset: copy.offset, length: copy.length };
      encodedTo = copy.at + copy.length;
      at = encodedTo;
    }
  }
  if (to > encodedTo) yield { kind: 'insert', offset: encodedTo, length: to - encodedTo };
}

interface Candidate {
  readonly found: number;
  readonly at: number;
  /** The bytes before this position are already encoded. */
  readonly encodedTo: number;
  readonly to: number;
}

/** @returns the equal range around a candidate, in both directions; undefined if it is too short */
function grow(base: ByteSource, next: ByteSource, { found, at, encodedTo, to }: Candidate) {
  const inBase = { source: base, at: found };
  const inNext = { source: next, at };
  const ahead = commonAhead(inBase, inNext, Math.min(base.length - found, to - at));
  const behind = commonBehind(inBase, inNext, Math.min(found, at - encodedTo));
  const length = behind + ahead;
  return length < minCopyBytes || ahead === 0
    ? undefined
    : { at: at - behind, offset: found - behind, length };
}
