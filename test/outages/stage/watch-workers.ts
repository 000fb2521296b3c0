// Queries the workers themselves ten times a second, and reads `current`. Uses no report of Writ.
import { readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type { Sample } from './outage.js';

const gapMs = 100;
const answerMs = 1000;

export interface Watch extends AsyncDisposable {
  /** In chronological order, without samples that equal the previous one. */
  readonly samples: readonly Sample[];
  now(): Sample;
}

/** @param sockets of the workers; `current` is the link that they read */
export async function watchWorkers(sockets: readonly string[], current: string): Promise<Watch> {
  const samples: Sample[] = [];
  let isOver = false;
  const sample = async (): Promise<void> => {
    const link = linkAt(current);
    const answers = await Promise.all(sockets.map(askWorker));
    const atMs = performance.now();
    const last = samples.at(-1);
    const sample: Sample = { atMs, current: link, answers };
    if (last === undefined || !isSameSample(last, sample)) samples.push(sample);
  };
  await sample();
  const running = (async () => {
    while (!isOver) {
      await setTimeout(gapMs);
      await sample();
    }
  })();
  return {
    samples,
    now: () => samples.at(-1) as Sample,
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await running;
    },
  };
}

function isSameSample(a: Sample, b: Sample): boolean {
  return a.current === b.current && a.answers.every((one, index) => one === b.answers[index]);
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** @returns the body; undefined without a response within a second */
export function askWorker(socket: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const asked = request({ socketPath: socket, timeout: answerMs, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve(text.trim()));
      response.once('error', () => resolve(undefined));
    });
    asked.once('timeout', () => asked.destroy());
    asked.once('error', () => resolve(undefined));
    asked.once('close', () => resolve(undefined));
    asked.end();
  });
}
