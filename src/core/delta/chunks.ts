// Content-defined chunks of a file, and an index of them. The last bytes of a chunk determine its end, so that an insertion does not
// move the later boundaries. A gear hash finds the boundaries. An equal fingerprint is only a candidate: the matcher compares the
// bytes. Memory is bounded for files of any size.
import type { ByteSource } from './byte-source.js';

/** Number of entries of the index; a longer file gets larger chunks. */
const maxChunks = 262_144;
const minBits = 6;
const windowBytes = 1_048_576;

/** 256 pseudo-random numbers, the same in each run. */
function gearTable(): Uint32Array {
  let state = 0x9e3779b9;
  return Uint32Array.from({ length: 256 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.imul(state ^ (state >>> 15), 0x85ebca6b) >>> 0;
  });
}

/** How both files of a pair are divided into chunks. */
export interface ChunkRule {
  readonly gear: Uint32Array;
  /** A chunk has about 2 ** bits bytes. */
  readonly bits: number;
}

/**
 * Returns the rule that divides both files of a pair into chunks. Pure; throws nothing.
 * @param length bytes of the file that is indexed; 0 counts as 1
 * @returns `bits` is at least 6, and grows so that a file has about 262,144 chunks at most; `gear` has the same 256 numbers in
 *   each call. Examples: `bits` is 6 for a length up to 16,777,216, and 7 for up to twice that
 */
export function chunkRule(length: number): ChunkRule {
  const bits = Math.max(minBits, Math.ceil(Math.log2(Math.max(length, 1) / maxChunks)));
  return { gear: gearTable(), bits };
}

/** Finds the chunks of one file, from any position. */
export class ChunkScanner {
  readonly #source: ByteSource;
  readonly #rule: ChunkRule;
  readonly #minBytes: number;
  readonly #maxBytes: number;
  #buffer: Buffer = Buffer.alloc(0);
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;
  /** Length of the last found chunk, as `fingerprint`. */
  length = 0;
  fingerprint = 0;

  constructor(source: ByteSource, rule: ChunkRule) {
    this.#source = source;
    this.#rule = rule;
    this.#minBytes = 2 ** (rule.bits - 2);
    this.#maxBytes = 2 ** (rule.bits + 3);
  }

  /** Finds the chunk that begins at `at` and ends at most at `to`. */
  scan(at: number, to: number): void {
    const want = Math.min(this.#maxBytes, to - at);
    if (at < this.#windowAt || at + want > this.#windowAt + this.#window.length) {
      this.#fill(at, Math.min(Math.max(windowBytes, want), to - at));
    }
    const { gear, bits } = this.#rule;
    const window = this.#window;
    const begin = at - this.#windowAt;
    const firstEnd = begin + this.#minBytes;
    const end = begin + want;
    const shift = 32 - bits;
    let rolling = 0;
    let print = 0x811c9dc5;
    let index = begin;
    while (index < end) {
      const byte = window[index] as number;
      index += 1;
      rolling = ((rolling << 1) + (gear[byte] as number)) | 0;
      print = Math.imul(print ^ byte, 0x01000193);
      if (rolling >>> shift === 0 && index >= firstEnd) break;
    }
    this.length = index - begin;
    this.fingerprint = print;
  }

  /** Copies the bytes, because a source may reuse its buffer when matches are compared between two scans. */
  #fill(at: number, length: number): void {
    if (this.#buffer.length < length) this.#buffer = Buffer.allocUnsafe(length);
    this.#window = this.#buffer.subarray(0, length);
    this.#source.read(at, length).copy(this.#window);
    this.#windowAt = at;
  }
}

/** Positions of the chunks of a base by fingerprint; of equal chunks, the first. */
export class ChunkIndex {
  readonly #starts: Uint32Array;
  readonly #prints: Int32Array;
  readonly #mask: number;
  #freeEntries: number;

  constructor(source: ByteSource, { rule, from, to }: { rule: ChunkRule; from: number; to: number }) {
    // Chunks may be shorter than expected and so more numerous: no chunk is added to a table that is half full.
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, ((to - from) / 2 ** rule.bits) * 4)));
    this.#starts = new Uint32Array(slots);
    this.#prints = new Int32Array(slots);
    this.#mask = slots - 1;
    this.#freeEntries = slots / 2;
    const scanner = new ChunkScanner(source, rule);
    for (let at = from; at < to && this.#freeEntries > 0; at += scanner.length) {
      scanner.scan(at, to);
      this.#add(scanner.fingerprint, at);
    }
  }

  /** @returns the position of a chunk with this fingerprint; its bytes may differ */
  find(fingerprint: number): number | undefined {
    const start = this.#starts[this.#slotOf(fingerprint)] as number;
    return start === 0 ? undefined : start - 1;
  }

  #add(fingerprint: number, at: number): void {
    const slot = this.#slotOf(fingerprint);
    if (this.#starts[slot] !== 0) return;
    this.#starts[slot] = at + 1;
    this.#prints[slot] = fingerprint;
    this.#freeEntries -= 1;
  }

  #slotOf(fingerprint: number): number {
    let slot = (fingerprint ^ (fingerprint >>> 15)) & this.#mask;
    while (this.#starts[slot] !== 0 && this.#prints[slot] !== fingerprint) slot = (slot + 1) & this.#mask;
    return slot;
  }
}
