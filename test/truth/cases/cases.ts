// The cases in the order of the page's columns, and which of them a run of CI plays.
import { agentCases } from './agent-cases.js';
import type { Case } from './case.js';
import { outageCases } from './outage-cases.js';
import { releaseCases, rollbackCases } from './release-cases.js';

export const cases: readonly Case[] = [...releaseCases, ...outageCases, ...rollbackCases, ...agentCases];

/** Those that every run of CI plays with every daemon. */
export const always: readonly string[] = ['good', 'refused', 'dead before', 'absent', 'killed'];

/** Those in which an agent runs: with its real intervals they take minutes. */
export const slow: readonly string[] = ['killed', 'emptied'];
