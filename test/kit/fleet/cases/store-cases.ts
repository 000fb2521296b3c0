// The tests that each kind of store must pass.

import type { NewLocation } from '../fleet-bench.js';
import { blockedCases } from './blocked-cases.js';
import { enrolCases } from './enrol-cases.js';
import { fullCases } from './full-cases.js';
import { ingestCases } from './ingest-cases.js';
import { intervalCases } from './interval-cases.js';
import { keepaliveCases } from './keepalive-cases.js';
import { oneCountCases } from './one-count-cases.js';
import { openCases } from './open-cases.js';
import { randomCases } from './random-cases.js';
import { renameCases } from './rename-cases.js';
import { sweepCases } from './sweep-cases.js';
import { tokenCases } from './token-cases.js';
import { webhookCases } from './webhook-cases.js';

/** @param runs number of random histories */
export function storeCases(newLocation: NewLocation, runs: number): void {
  openCases(newLocation);
  tokenCases(newLocation);
  enrolCases(newLocation);
  ingestCases(newLocation);
  renameCases(newLocation);
  keepaliveCases(newLocation);
  sweepCases(newLocation);
  intervalCases(newLocation);
  webhookCases(newLocation);
  fullCases(newLocation);
  blockedCases(newLocation);
  oneCountCases(newLocation);
  randomCases(newLocation, runs);
}
