// The cases in the order of the page's columns, and those that each CI run includes.
import { agentCases } from './agent-cases.js';
import type { Case } from './case.js';
import { outageCases } from './outage-cases.js';
import { releaseCases, rollbackCases } from './release-cases.js';

export const cases: readonly Case[] = [...releaseCases, ...outageCases, ...rollbackCases, ...agentCases];

/** The cases that every CI run includes for every daemon. */
export const always: readonly string[] = ['good', 'refused', 'dead before', 'absent', 'killed'];

/** The cases with a running agent, which take minutes with real intervals. */
export const slow: readonly string[] = ['killed', 'emptied'];
