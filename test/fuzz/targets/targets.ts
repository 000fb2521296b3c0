// All targets by name. A target is made when it runs, because those of HTTP listen.
import type { Target } from '../engine/target.js';
import { manifestTarget, tarTarget } from './archive-targets.js';
import { deltaTarget } from './delta-target.js';
import { httpAnswersTarget, httpRequestsTarget } from './http-targets.js';
import { rangeAnswersTarget } from './range-target.js';
import { controlTarget, kresdTarget, nativeTarget } from './socket-targets.js';
import { configTarget, metadataTarget, xmlRpcTarget } from './text-targets.js';

export const targets: Readonly<Record<string, () => Target | Promise<Target>>> = {
  tar: () => tarTarget(),
  manifest: () => manifestTarget(),
  delta: () => deltaTarget(),
  'tuf-metadata': () => metadataTarget(),
  configuration: () => configTarget(),
  'control-socket': () => controlTarget(),
  'native-protocol': () => nativeTarget(),
  kresd: () => kresdTarget(),
  'xml-rpc': () => xmlRpcTarget(),
  'http-answers': () => httpAnswersTarget(),
  'range-answers': () => rangeAnswersTarget(),
  'http-requests': () => httpRequestsTarget(),
};
