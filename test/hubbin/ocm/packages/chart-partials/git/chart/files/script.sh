#!/bin/sh
echo "{{ not a template }}"
