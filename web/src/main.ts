// SPDX-License-Identifier: MIT
import 'uplot/dist/uPlot.min.css';
import './app.css';
import { App } from './app';
import { takeToken } from './token';
import { TspClient } from './tsp';

const base = new URL('tsp/api', document.baseURI).pathname;
// For tests and curious people: the parts of the page.
(window as unknown as { weft: App }).weft = new App(new TspClient(base, takeToken()));
